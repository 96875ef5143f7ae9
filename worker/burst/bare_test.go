package burst

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
)

const bareQueue = "bare"

// startBare starts a plain SDK worker. It runs the workflows of the baseline, which contain none of our logic.
func (s *stack) startBare() {
	s.t.Helper()
	w := worker.New(s.temporal, bareQueue, worker.Options{})
	w.RegisterWorkflow(Bare)
	w.RegisterWorkflow(BareEntity)
	w.RegisterActivity(Empty)
	require.NoError(s.t, w.Start())
	s.t.Cleanup(w.Stop)
}

// bare runs n workflows of the baseline, each of which signals one entity twice. It returns the duration.
func (s *stack) bare(round, n int) time.Duration {
	s.t.Helper()
	start := func(id string, workflow any, args ...any) (client.WorkflowRun, error) {
		return s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{ID: id, TaskQueue: bareQueue}, workflow, args...)
	}
	entity := fmt.Sprintf("bare-entity/%d", round)
	began := time.Now()
	all, err := start(entity, BareEntity, 2*n)
	require.NoError(s.t, err)
	var g errgroup.Group
	g.SetLimit(parallel)
	for i := range n {
		g.Go(func() error {
			_, err := start(fmt.Sprintf("bare/%d-%d", round, i), Bare, entity)
			return err
		})
	}
	require.NoError(s.t, g.Wait())
	require.NoError(s.t, all.Get(s.ctx, nil))
	return time.Since(began)
}

// Bare is the smallest possible scale-out: it runs four activities and sends two signals to an entity that counts them.
func Bare(ctx workflow.Context, entity string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	for step := range 4 {
		if err := workflow.ExecuteActivity(ctx, Empty).Get(ctx, nil); err != nil {
			return err
		}
		if step%2 == 0 {
			continue
		}
		if err := workflow.SignalExternalWorkflow(ctx, entity, "", "count", step).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// BareEntity counts signals until it has received the last one.
func BareEntity(ctx workflow.Context, left int) error {
	signals := workflow.GetSignalChannel(ctx, "count")
	for left > 0 && workflow.GetInfo(ctx).GetCurrentHistoryLength() < 1000 {
		signals.Receive(ctx, nil)
		left--
	}
	for signals.ReceiveAsync(nil) {
		left--
	}
	if left <= 0 {
		return nil
	}
	return workflow.NewContinueAsNewError(ctx, BareEntity, left)
}

// Empty does nothing.
func Empty(context.Context) error { return nil }
