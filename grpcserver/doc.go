// Package grpcserver is the face to CA: the externalgrpc CloudProvider service.
//
// Reads are answered from an in-memory view and never wait for anything; mutations book durably through the port Groups
// before they return. CA treats every failing read but Refresh as a loss of state: it drops timers, forgets scale-ups or
// empties its lists. So when consistent data cannot be had, Refresh fails and nothing else does.
//
//	CA ──rpc──> reads.go ────> view.go <──replaced only by newer snapshots──┐
//	     └────> mutations.go ──> Groups (NodeGroup workflows) ──snapshot────┤
//	     └────> refresh.go ────> Groups.Snapshot, Groups.Configure ─────────┘
//
// A mutation whose answer was lost makes its group dirty: reads keep the last snapshot, and Refresh fails until a read
// that begins after the lost operation can no longer run has told what became of it.
package grpcserver
