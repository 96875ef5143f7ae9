// Package backendtest is the one contract suite of backend.Backend: backend/sim, liqo and microvm pass the same Run,
// unchanged. Each promise in the port's comments has a subtest; a promise without a subtest does not count as kept.
//
// The subtests run one after another and share peerings and nodes where that is sensible, because on real clusters a
// peering, a node and its return take seconds each. Each subtest begins by ensuring its objects with the port's own
// verbs (which are idempotent), so each can also be run alone with -run.
//
// World reaches the objects that the port does not show: objects on the provider, pods on a node, other people's
// slices, a dead provider. Its optional functions may be nil: a subtest that needs a missing function is skipped, with
// the reason.
package backendtest
