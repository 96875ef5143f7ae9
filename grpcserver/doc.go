// Package grpcserver is the interface to CA: the externalgrpc CloudProvider service.
//
// Reads are answered from an in-memory view and do not block. Mutations book durably through the port Groups before
// they return. CA treats every failing read except Refresh as a loss of state: it drops timers, forgets scale-ups or
// empties its lists. Therefore only Refresh fails when Temporal does not answer.
//
//	CA ──rpc──> reads.go ────> view.go <──snapshots, the newest wins ────────────────────────────────────┐
//	     └────> mutations.go ──> Groups (NodeGroup workflows) ──position, then the snapshot──────────────┤
//	     └────> refresh.go ────> Groups.Snapshot, Groups.Configure ──────────────────────────────────────┘
//
// A mutation whose answer was lost makes its group dirty: reads keep the last picture, and Refresh fails for at most
// two minutes. It succeeds again when a read that started after the lost operation's last possible run shows the
// outcome.
//
// A group that cannot be read, or refuses its spec, fails no Refresh: it is served from its last picture, with its
// target as max, and its mutations return Unavailable. A group that has never been read is not listed.
package grpcserver
