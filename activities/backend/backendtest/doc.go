// Package backendtest is the contract suite of backend.Backend. The same Run tests backend/sim, backend/liqo and
// backend/microvm. Each promise in the comments of backend.Backend needs a subtest here.
//
// The subtests run one after another. Most subtests share peerings and nodes, because on real clusters each peering,
// each node and each return takes seconds. Each subtest first makes its objects with the backend's own verbs, which
// are idempotent. So each subtest can also run alone with -run.
//
// World reads and changes objects that a backend does not show: objects on the provider, pods on a node, slices of
// other owners. It also makes a provider unreachable. Its optional functions may be nil. A subtest that needs a
// missing function is skipped, and its output contains the reason.
package backendtest
