// Package backendtest is the one contract suite of backend.Backend: backend/sim, liqo and microvm pass the same Run,
// unchanged. What the port promises in prose is asked here as a question; a promise that no subtest asks is not kept.
//
// The subtests run one after another and share peerings and nodes where that is sensible, because on real clusters a
// peering, a node and the way back take seconds each. Each begins by ensuring what it needs with the port's own verbs
// (which are idempotent), so each can also be run alone with -run.
//
// What the port does not show (objects on the provider, pods on a node, other people's slices, a dead provider) is
// reached through World. Its optional functions may be nil: what needs them is skipped, with the reason.
package backendtest
