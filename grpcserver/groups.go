package grpcserver

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Groups is the port to the durable node groups.
//
// Mutations are all or nothing and durable when they return; the snapshot they return contains them. They bound
// themselves by ctx and never run after its deadline has passed. Errors of all verbs: *fleet.Refusal (nothing changed),
// fleet.ErrUnavailable (nothing changed), fleet.ErrOutcomeUnknown (mutations only; any other error counts as that).
// All verbs are safe for concurrent use.
type Groups interface {
	// Configure brings the group's spec in force and starts the group when it does not run. Idempotent by the spec's hash.
	Configure(ctx context.Context, spec fleet.GroupSpec) (fleet.Snapshot, error)
	// Grow books delta > 0 new instances. Two calls are two operations.
	Grow(ctx context.Context, group string, delta int) (fleet.Snapshot, error)
	// Shrink cancels at most delta > 0 instances that count and are not registered, youngest first; it refuses only when
	// there is none.
	Shrink(ctx context.Context, group string, delta int) (fleet.Snapshot, error)
	// Release gives the named instances back. Idempotent; names that are already gone are fine.
	Release(ctx context.Context, group string, names []string) (fleet.Snapshot, error)
	// Snapshot reads what the group last published. It needs no worker and sees every mutation that returned before.
	Snapshot(ctx context.Context, group string) (fleet.Snapshot, error)
}
