// Package driver implements the state machine of the workflow that drives one instance, scale-out/<name> or
// scale-in/<name>. Its Step decides which step runs next, when to repeat the request to the provider and what to
// report to the group. The transitions come from fleet.Machine. The package uses the same types of package fleet as
// the state machines of groups and providers, but shares no state with them.
package driver
