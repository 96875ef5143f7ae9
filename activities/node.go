package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// WaitForVirtualNode makes the attempt's slice and virtual node and returns once the Node is Ready and stamped. When it
// is cancelled it takes one more look: a node that is stamped and Ready by then is done, not given up.
func (a *Activities) WaitForVirtualNode(ctx context.Context, in backend.NodeSpec) (backend.Node, error) {
	ctx, progress, stop := heartbeat(ctx)
	defer stop()
	node, err := a.Backend.Join(ctx, in, progress)
	if err != nil && ctx.Err() != nil && !stopping(ctx) && a.readyAfterAll(ctx, in.Attempt) {
		return backend.Node{Name: in.Attempt.ObjectName()}, nil
	}
	if errors.Is(err, backend.ErrNotPeered) {
		return node, a.notPeered(ctx, in.Attempt.Provider.ID, err)
	}
	return node, wall(ctx, in.Attempt.Provider.ID, err)
}

// notPeered has the peering repaired that a hold was granted on and that is gone all the same: somebody removed it by
// hand. The step is tried again meanwhile, within its budget.
func (a *Activities) notPeered(ctx context.Context, provider string, err error) error {
	if broken := a.Holds.Broken(ctx, provider); broken != nil {
		err = errors.Join(err, broken)
	}
	return failure(fleet.NewFailure(fleet.CodeRefused, provider, "peering", err.Error()), false)
}

func (a *Activities) readyAfterAll(ctx context.Context, at backend.Attempt) bool {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	found, err := a.Backend.List(look, at.Group)
	if err != nil {
		return false
	}
	for _, f := range found {
		if f.Attempt.ObjectName() == at.ObjectName() {
			return f.Marked && f.Stamped && f.Ready && !f.Leaving
		}
	}
	return false
}

// DrainInput names the node to empty.
type DrainInput struct {
	Attempt backend.Attempt `json:"attempt"`
	// Force deletes pods instead of evicting them.
	Force bool `json:"force,omitempty"`
}

// Drain empties the attempt's node; a node that is gone is empty.
func (a *Activities) Drain(ctx context.Context, in DrainInput) error {
	ctx, progress, stop := heartbeat(ctx)
	defer stop()
	return wall(ctx, in.Attempt.Provider.ID, a.Backend.Drain(ctx, in.Attempt, in.Force, progress))
}

// UnpeerInput names the attempt to take back.
type UnpeerInput struct {
	Attempt backend.Attempt `json:"attempt"`
}

// Unpeer takes the attempt's node and slice back on both sides and then gives its hold back, after the last of which the
// provider entity removes the peering. Never final: it is tried until it succeeds.
func (a *Activities) Unpeer(ctx context.Context, in UnpeerInput) error {
	ctx, progress, stop := heartbeat(ctx)
	defer stop()
	provider, key := in.Attempt.Provider.ID, in.Attempt.ObjectName()
	if err := a.Backend.Leave(ctx, in.Attempt, progress); err != nil {
		if stopping(ctx) {
			return err
		}
		return failure(leaveFailure(provider, err), false)
	}
	if err := a.Holds.Release(ctx, provider, key); err != nil {
		return failure(fleet.NewFailure(fleet.CodeInternal, provider, "", fmt.Sprintf("release hold %s on provider %s: %v", key, provider, err)), false)
	}
	return nil
}

func leaveFailure(provider string, err error) *fleet.Failure {
	code, _ := classify(err)
	stage := ""
	var at *backend.StageError
	if errors.As(err, &at) {
		stage = string(at.Stage)
	}
	return fleet.NewFailure(code, provider, stage, err.Error())
}
