// Package driver is the machine of the workflow that drives one instance, scale-out/<name> or scale-in/<name>, and its
// Step. It answers which step runs next, when the provider is asked again, and what the group is told.
// It moves by fleet.Machine, and shares fleet's words with the machines of groups and providers, but no state.
package driver
