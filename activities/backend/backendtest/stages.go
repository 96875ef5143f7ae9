package backendtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// These lists contain the stages of each verb in the order in which the verb reaches them.
var (
	establishOrder = []backend.Stage{
		backend.StageAPIServer, backend.StageNetworkConfig, backend.StageGatewayServer, backend.StageGatewayClient,
		backend.StageGatewayKeys, backend.StageConnection, backend.StageNonce, backend.StageSignedNonce,
		backend.StageTenant, backend.StageIdentity, backend.StageReachable,
	}
	removeOrder = []backend.Stage{
		backend.StageIdentityGone, backend.StageTenantGone, backend.StageNetworkGone, backend.StageNamespacesGone,
	}
	joinOrder = []backend.Stage{
		backend.StageSliceAuth, backend.StageResources, backend.StageVirtualKubelet, backend.StageNode,
		backend.StageReady, backend.StageStamp,
	}
)

// recorder is a backend.Progress that records the stages. It has no lock, because a verb must call Progress in the
// goroutine of its caller. If a verb calls Progress in another goroutine, the race detector reports it.
type recorder struct {
	stages []backend.Stage
	each   func(stage backend.Stage) // called after recording; may be nil
}

func (r *recorder) progress(stage backend.Stage, _ string) {
	r.stages = append(r.stages, stage)
	if r.each != nil {
		r.each(stage)
	}
}

// count returns how often the stage was reported.
func (r *recorder) count(stage backend.Stage) int {
	n := 0
	for _, s := range r.stages {
		if s == stage {
			n++
		}
	}
	return n
}

// requireOrder fails when the list got is empty, contains a stage that the list order does not contain, or contains
// two stages in another sequence than order.
func requireOrder(t *testing.T, order, got []backend.Stage) {
	t.Helper()
	require.NotEmpty(t, got, "no stage was reported, of %q", order)
	last := 0
	for _, stage := range got {
		i := slices.Index(order, stage)
		require.GreaterOrEqual(t, i, 0, "stage %q is none of %q", stage, order)
		require.GreaterOrEqual(t, i, last, "stage %q reported late in %q", stage, got)
		last = i
	}
}

// stoppable returns a context and a function that cancels it with errStop.
func (s *suite) stoppable(t *testing.T) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(s.ctx(t))
	t.Cleanup(func() { cancel(nil) })
	return ctx, func() { cancel(errStop) }
}

// requireStopped checks that err is the error that a verb must return after stop was called: a StageError that wraps
// both the context's error and its cause. It returns the stage.
func requireStopped(t *testing.T, err error) backend.Stage {
	t.Helper()
	var stage *backend.StageError
	require.ErrorAs(t, err, &stage, "a cancelled verb returns a *backend.StageError")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errStop, "the cause of the cancellation is lost")
	require.NotEmpty(t, stage.Stage)
	return stage.Stage
}

// stageOf returns the stage that an error names, or "".
func stageOf(err error) backend.Stage {
	var stage *backend.StageError
	if errors.As(err, &stage) {
		return stage.Stage
	}
	return ""
}
