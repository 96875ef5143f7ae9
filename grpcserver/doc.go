// Package grpcserver is the face to CA: the externalgrpc CloudProvider service.
//
// Reads are answered from an in-memory view and wait for nothing; mutations book durably through the port Groups
// before they return. CA treats every failing read but Refresh as a loss of state: it drops timers, forgets scale-ups
// or empties its lists. So when Temporal cannot be asked, Refresh fails and nothing else does.
//
//	CA ──rpc──> reads.go ────> view.go <──snapshots that are newer, changes that build on what is there──┐
//	     └────> mutations.go ──> Groups (NodeGroup workflows) ──change───────────────────────────────────┤
//	     └────> refresh.go ────> Groups.Snapshot, Groups.Configure ──────────────────────────────────────┘
//
// A mutation whose answer was lost makes its group dirty: reads keep the last picture, and Refresh fails until a read
// that begins after the lost operation can no longer run has told its outcome, for at most two minutes.
//
// A group that cannot be read, or does not take its spec, fails no Refresh: it is served from its last picture, with
// its target as max, and its mutations are Unavailable. One that has never been read is not listed.
package grpcserver
