package grpcserver

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Groups is the port to the durable node groups.
//
// Mutations are all or nothing and durable when they return. Each one carries the newest position of the group that
// this server has seen; a group that is behind that position begins anew from what exists. It returns the position that
// the group has reached with it, from which on Snapshot shows it. They bound themselves by ctx and never run after its
// deadline has passed.
//
// Errors of all methods: *fleet.Refusal (nothing changed); fleet.ErrUnavailable (nothing changed), together with
// fleet.ErrTemporal when Temporal cannot be asked; fleet.ErrOutcomeUnknown (mutations only; any other error counts as
// that). All methods are safe for concurrent use.
type Groups interface {
	// Configure puts the group's spec in force, with what there is to say of it, and starts the group when it does not
	// run. Idempotent by the spec's hash and the notice.
	Configure(ctx context.Context, spec fleet.GroupSpec, notice fleet.GroupNotice, seen fleet.Position) (fleet.Position, error)
	// Grow books delta > 0 new instances, each of which may cost priceCap in an hour; 0 is no bound. Two calls are two
	// operations.
	Grow(ctx context.Context, group string, delta int, priceCap float64, seen fleet.Position) (fleet.Position, error)
	// Shrink cancels at most delta > 0 instances that count and are not registered, youngest first; it refuses only
	// when there is none.
	Shrink(ctx context.Context, group string, delta int, seen fleet.Position) (fleet.Position, error)
	// Release gives the named instances back. Idempotent; names that are already gone are fine.
	Release(ctx context.Context, group string, names []string, seen fleet.Position) (fleet.Position, error)
	// Snapshot reads what the group last published. It needs no worker. It shows every mutation that returned before,
	// unless the group could not publish it: then the snapshot is at an older position than the mutation returned.
	// fleet.ErrNotRunning when the group does not run, fleet.RefusedNotInitialised when it has published nothing yet.
	Snapshot(ctx context.Context, group string) (fleet.Snapshot, error)
	// Running lists the ids of the groups that run, configured or not. It may miss what started or ended seconds ago.
	Running(ctx context.Context) ([]string, error)
	// Close ends an empty group. Configure starts it anew, with a new epoch. Idempotent.
	Close(ctx context.Context, group string) error
}
