// Package provider implements the state machine of a provider cluster: the state of the workflow provider/<id> and its
// Step. It decides which attempts get a share of the newest offer, when the peering is established, kept, repaired or
// removed, and which drivers receive an answer. The transitions come from fleet.PeeringMachine. The package uses the
// same types of package fleet as the state machines of groups and drivers, but shares no state with them.
package provider
