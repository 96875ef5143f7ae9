package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// handle registers the group's updates. Each has a validator, which refuses without leaving a trace in the history, and a
// handler, which decides once more: validators do not run on replay, and two updates may pass theirs before either runs.
func (g *nodeGroup) handle(ctx workflow.Context) error {
	return errors.Join(
		setUpdate(ctx, UpdateConfigure, g.checkConfigure, g.configure),
		setUpdate(ctx, UpdateGrow, g.checkGrow, g.grow),
		setUpdate(ctx, UpdateShrink, g.checkShrink, g.shrink),
		setUpdate(ctx, UpdateRelease, g.checkRelease, g.release),
	)
}

func setUpdate[T, R any](ctx workflow.Context, name string, check func(workflow.Context, T) error, do func(workflow.Context, T) (R, error)) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, name, do, workflow.UpdateHandlerOptions{
		Validator: func(ctx workflow.Context, in T) error { return refusal(ctx, check(ctx, in)) },
	})
}

// refusal gives a *fleet.Refusal its form on the wire: its kind as the error's type, the workflow's clock as a detail.
func refusal(ctx workflow.Context, err error) error {
	var r *fleet.Refusal
	if errors.As(err, &r) {
		return temporal.NewNonRetryableApplicationError(r.Message, string(r.Kind), nil, workflow.Now(ctx))
	}
	return err
}

// once runs do under the operation, unless it has run before, and publishes.
func (g *nodeGroup) once(ctx workflow.Context, op fleet.Operation, admit func(time.Time) (bool, error), do func(now time.Time) error) (fleet.Snapshot, error) {
	if err := g.wasReset(ctx); err != nil {
		return fleet.Snapshot{}, refusal(ctx, err)
	}
	now := workflow.Now(ctx)
	known, err := admit(now)
	if err == nil && !known {
		err = do(now)
	}
	if err != nil {
		return fleet.Snapshot{}, refusal(ctx, err)
	}
	if !known {
		g.ledger.Ops.Add(op.ID)
		g.dirty = true
	}
	return g.publish(ctx), nil
}

func (g *nodeGroup) recovering() error {
	if g.ready {
		return nil
	}
	return fleet.Refuse(fleet.RefusedNotInitialised, "group "+g.id+" is recovering from what exists")
}

// wasReset refuses what would be booked on what a group knew before it was reset; the caller asks again, and then it has
// begun anew.
func (g *nodeGroup) wasReset(ctx workflow.Context) error {
	if !wasReset(ctx) {
		return nil
	}
	g.dirty = true // the loop ends this run
	return fleet.Refuse(fleet.RefusedNotInitialised, "group "+g.id+" was reset and begins anew from what exists")
}

// check is what all validators but configure's share: recovered, admitted, and then the operation's own rule unless it
// has run before.
func (g *nodeGroup) check(ctx workflow.Context, op fleet.Operation, can func() error) error {
	if err := g.recovering(); err != nil {
		return err
	}
	known, err := g.ledger.Admit(op, workflow.Now(ctx))
	if err != nil || known {
		return err
	}
	return can()
}

func (g *nodeGroup) checkGrow(ctx workflow.Context, in SizeRequest) error {
	return g.check(ctx, in.Operation, func() error { return g.ledger.CanGrow(in.Delta) })
}

func (g *nodeGroup) grow(ctx workflow.Context, in SizeRequest) (fleet.Snapshot, error) {
	return g.once(ctx, in.Operation, g.admit(in.Operation), func(now time.Time) error { return g.ledger.Grow(in.Delta, now) })
}

func (g *nodeGroup) checkShrink(ctx workflow.Context, in SizeRequest) error {
	return g.check(ctx, in.Operation, func() error { return g.ledger.CanShrink(in.Delta) })
}

func (g *nodeGroup) shrink(ctx workflow.Context, in SizeRequest) (fleet.Snapshot, error) {
	return g.once(ctx, in.Operation, g.admit(in.Operation), func(time.Time) error { return g.ledger.Shrink(in.Delta) })
}

func (g *nodeGroup) checkRelease(ctx workflow.Context, in ReleaseRequest) error {
	return g.check(ctx, in.Operation, func() error { return g.ledger.CanRelease(in.Names) })
}

func (g *nodeGroup) release(ctx workflow.Context, in ReleaseRequest) (fleet.Snapshot, error) {
	return g.once(ctx, in.Operation, g.admit(in.Operation), func(time.Time) error { return g.ledger.Release(in.Names) })
}

func (g *nodeGroup) admit(op fleet.Operation) func(time.Time) (bool, error) {
	return func(now time.Time) (bool, error) { return g.ledger.Admit(op, now) }
}

// configure needs no spec to be there, so it is not admitted as the others are; it is idempotent by itself.
func (g *nodeGroup) checkConfigure(_ workflow.Context, in ConfigureRequest) error {
	if err := g.recovering(); err != nil {
		return err
	}
	if in.Spec.ID != g.id {
		return fleet.Refuse(fleet.RefusedInvalid, "this is group "+g.id+", not "+in.Spec.ID)
	}
	return nil
}

func (g *nodeGroup) configure(ctx workflow.Context, in ConfigureRequest) (fleet.Snapshot, error) {
	if err := errors.Join(g.wasReset(ctx), g.checkConfigure(ctx, in)); err != nil {
		return fleet.Snapshot{}, refusal(ctx, err)
	}
	if err := g.ledger.Configure(in.Spec); err != nil {
		return fleet.Snapshot{}, refusal(ctx, err)
	}
	return g.publish(ctx), nil
}
