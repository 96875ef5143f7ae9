// Package grpcserver is the interface to Cluster Autoscaler ("CA"): the CloudProvider service of the protocol
// externalgrpc.
//
// The server answers reads from a view in memory, without blocking. A mutation books its change durably through the
// interface Groups before it returns. If a read other than Refresh fails, CA loses state: it drops timers, forgets
// scale-ups or empties its lists. Therefore only Refresh fails when Temporal does not answer.
//
//	CA ──rpc──> reads.go ────> view.go <──snapshots, the newest wins ────────────────────────────────────┐
//	     └────> mutations.go ──> Groups (NodeGroup workflows) ──position, then the snapshot──────────────┤
//	     └────> refresh.go ────> Groups.Snapshot, Groups.Configure ──────────────────────────────────────┘
//
// The files options.go and price.go answer CA's optional RPCs. The file expander.go answers CA's gRPC expander. The
// file serve.go registers the services, and door.go decides which callers are admitted.
//
// When the answer to a mutation is lost, the outcome of the mutation is unknown, and the group is "dirty". The server
// then answers reads with the last state that it has read, and fails Refresh for at most two minutes. Refresh
// succeeds again when the server has read the outcome. This read must start when the lost operation can no longer
// run.
//
// Refresh does not fail if a group cannot be read or refuses its spec. Reads then return the group's last state, with
// its target size as max, and mutations of the group return Unavailable. A group that the server has never read is
// not listed.
package grpcserver
