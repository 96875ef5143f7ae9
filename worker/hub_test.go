package worker_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// Two clusters, each with its own hub, use the same provider and share a Temporal namespace. Neither hub uses the other
// hub's group or provider of the same name.
func TestHubsOfOneNamespaceStaySeparate(t *testing.T) {
	t.Parallel()
	hubs := []workflows.Hub{fleet.DefaultHub, "edge"} // no other test uses this hub
	var scenes []*scene
	for i, hub := range hubs {
		s := newSceneOf(t, "shared", hub, 1)
		s.work()
		s.grow(i + 1)
		scenes = append(scenes, s)
	}
	for i, s := range scenes {
		s.allIn(fleet.Ready, i+1)
		s.counts("its own nodes", func(c sim.Counts) bool { return c.Ready == i+1 && c.Slices == i+1 })
		s.provider(0, "its own holds", func(p fleet.ProviderSnapshot) bool { return len(p.Holds) == i+1 })
	}

	require.Eventually(t, func() bool {
		for i, s := range scenes {
			groups, err := s.groups.Running(t.Context())
			states, err2 := flow.NewEntities(s.temporal, s.hub, s.queue).Providers(t.Context())
			if errors.Join(err, err2) != nil || !slices.Equal(groups, []string{"shared"}) || len(states) != 1 ||
				len(states[0].Holds) != i+1 {
				return false
			}
		}
		return true
	}, waitLimit, waitTick, "Temporal's list lags behind")

	for _, i := range scenes[1].snapshot().Instances {
		scenes[1].release(i.Name)
	}
	scenes[1].empty()
	require.Equal(t, 1, scenes[0].snapshot().Target, "the other hub's node")
	scenes[0].counts("the other hub's node", func(c sim.Counts) bool { return c.Ready == 1 })
	scenes[0].release(scenes[0].snapshot().Instances[0].Name)
	scenes[0].empty()
}
