package worker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// A group continues as new again and again under load, and each operation is sent twice concurrently. No operation is
// lost or applied twice, and the group's drivers continue.
func TestContinueAsNewAppliesEachOperationOnce(t *testing.T) {
	t.Parallel()
	const groups, each = 4, 10
	s := newScene(t, 0, func(g *fleet.GroupSpec) { g.Max = groups * each }).shortRuns().work()
	first := s.run(workflows.NodeGroupID(s.spec.ID))

	send := func(op fleet.Operation) error {
		for {
			h, err := s.temporal.UpdateWorkflow(s.ctx, client.UpdateWorkflowOptions{
				WorkflowID: workflows.NodeGroupID(s.spec.ID), UpdateName: string(fleet.Grow),
				Args: []any{fleet.Request{Operation: op, Delta: 1}}, WaitForStage: client.WorkflowUpdateStageCompleted,
			})
			if err == nil {
				err = h.Get(s.ctx, nil)
			}
			if err == nil || s.ctx.Err() != nil {
				return err
			}
		}
	}
	var wg sync.WaitGroup
	errs := make(chan error, 2*groups*each)
	for g := range groups {
		for range 2 {
			wg.Go(func() {
				for n := range each {
					errs <- send(fleet.Operation{ID: fmt.Sprintf("op-%d-%d", g, n), GiveUpAt: time.Now().Add(time.Minute)})
				}
			})
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	failed := s.allIn(fleet.Failed, groups*each) // no offer exists, so each instance fails
	require.Equal(t, groups*each, failed.Target)
	names := map[string]bool{}
	for _, i := range failed.Instances {
		names[i.Name] = true
	}
	require.Len(t, names, groups*each)
	require.NotEqual(t, first, s.run(workflows.NodeGroupID(s.spec.ID)), "it did continue as new")
}
