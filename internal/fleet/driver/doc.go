// Package driver implements the state machine of the workflow that drives one instance, scale-out/<name> or
// scale-in/<name>. Its Step decides which step runs next, when to repeat the request to the provider and what to report
// to the group. The transitions come from fleet.Machine. The package shares the types of package fleet with the
// machines of groups and providers, but no state.
package driver
