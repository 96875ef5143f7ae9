// Package provider is the machine of a provider cluster: the state of the workflow provider/<id> and its Step. It
// answers who holds what of the newest offer, when the peering is made, kept, repaired or removed, and who is told.
// It moves by fleet.PeeringMachine, and shares fleet's words with the machines of groups and drivers, but no state.
package provider
