package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Two clusters, each with an installation of its own, borrow from one provider and share a Temporal namespace, and neither
// takes the other's group or provider of the same name for its own.
func TestHubsShareANamespace(t *testing.T) {
	t.Parallel()
	hubs := []workflows.Hub{fleet.DefaultHub, "edge"}
	var scenes []*scene
	for i, hub := range hubs {
		s := newSceneOf(t, "shared", hub, 1)
		s.queue = hub.TaskQueue()
		s.groups = flow.NewGroups(s.temporal, hub, "")
		s.work()
		s.grow(i + 1)
		scenes = append(scenes, s)
	}
	for i, s := range scenes {
		s.allIn(fleet.Ready, i+1)
		s.counts("its own nodes", func(c sim.Counts) bool { return c.Ready == i+1 && c.Slices == i+1 })
		providers := flow.NewProviders(s.temporal, s.hub, "")
		state, err := providers.Status(s.ctx, s.providers[0])
		require.NoError(t, err)
		require.Len(t, state.Holds, i+1)
	}

	// Lists are of one hub, though another one may have been given its task queue.
	for _, queue := range []string{"", hubs[0].TaskQueue()} {
		require.Eventually(t, func() bool {
			for i, hub := range hubs {
				groups, err := flow.NewGroups(scenes[0].temporal, hub, queue).Running(t.Context())
				states, err2 := flow.NewProviders(scenes[0].temporal, hub, queue).Listed(t.Context())
				if err != nil || err2 != nil {
					return false
				}
				if queue != "" && i > 0 {
					require.Empty(t, groups)
					require.Empty(t, states)
				} else if len(groups) != 1 || groups[0] != "shared" || len(states) != 1 || len(states[0].Holds) != i+1 {
					return false
				}
			}
			return true
		}, waitLimit, waitTick, "Temporal's list lags behind")
	}

	for _, i := range scenes[1].snapshot().Instances {
		scenes[1].release(i.Name)
	}
	scenes[1].empty()
	require.Equal(t, 1, scenes[0].snapshot().Target, "the other hub's node")
	scenes[0].counts("the other hub's node", func(c sim.Counts) bool { return c.Ready == 1 })
	scenes[0].release(scenes[0].snapshot().Instances[0].Name)
	scenes[0].empty()
}
