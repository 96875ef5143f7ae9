package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// unready sets the group's budget for a Node whose provider is silent. It also raises the group's max to 16.
func unready(d time.Duration) func(*fleet.GroupSpec) {
	return func(g *fleet.GroupSpec) {
		g.Max = 16
		g.Budgets.Unready = &fleet.Term{Duration: metav1.Duration{Duration: d}}
	}
}

// The method `on` returns the group's instances on the n-th provider.
func (s *scene) on(n int, snap fleet.Snapshot) (rows []fleet.InstanceView) {
	for _, row := range snap.Instances {
		if row.Provider == s.providers[n] {
			rows = append(rows, row)
		}
	}
	return rows
}

// standing returns the published faults of the n-th provider.
func (s *scene) standing(n int) fleet.Standing {
	s.t.Helper()
	p, err := flow.NewEntities(s.temporal, s.hub, s.queue).Status(s.ctx, s.providers[n])
	require.NoError(s.t, err)
	return p.Standing
}

// rounds makes the observer run rounds until the condition holds.
func (s *scene) rounds(what string, holds func() bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		if !holds() {
			s.observe()
		}
		return holds()
	}, waitLimit, waitTick, "%s; %s", what, s)
}

// A provider with four of twelve instances dies. The four instances are lost and no longer count, and new instances
// replace them on another provider. When the dead provider is back, no object of ours is left there.
func TestProviderThatDiesLosesItsInstances(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 4, unready(2*time.Second)).work()
	s.grow(12)
	require.Len(t, s.on(0, s.allIn(fleet.Ready, 12)), 4)
	s.observe() // from here on the rounds know which providers to observe

	s.knobs(0, sim.Knobs{Unreachable: true})
	s.until("their Nodes are not ready", func(snap fleet.Snapshot) bool {
		return len(s.on(0, snap)) == 4 && len(snap.Instances) == 12 && countNotReady(snap) == 4
	})
	s.rounds("four are lost", func() bool { return s.snapshot().Target == 8 })
	for _, row := range s.on(0, s.snapshot()) {
		require.False(t, row.Counts)
		require.Equal(t, fleet.StateDeleting, row.State)
		require.NotNil(t, row.Failure)
		require.Equal(t, fleet.CodeLost, row.Failure.Code)
		require.Contains(t, row.Failure.Message, "does not answer")
	}
	require.Equal(t, fleet.ConditionUnreachable, s.standing(0).Condition())
	s.counts("their Nodes are removed immediately", func(c sim.Counts) bool { return c.Nodes == 8 && c.Slices == 12 })

	s.grow(4)
	s.until("four others, none on the dead provider", func(snap fleet.Snapshot) bool {
		return len(s.on(3, snap)) == 4 && snap.Target == 12 && countReady(snap) == 12
	})

	s.knobs(0, sim.Knobs{})
	s.allIn(fleet.Ready, 12)
	s.counts("nothing is left on it", func(c sim.Counts) bool {
		return c == sim.Counts{Peerings: 3, Tenants: 3, Slices: 12, RemoteSlices: 12, VirtualNodes: 12, Nodes: 12, Ready: 12,
			Stamped: 12}
	})
	s.rounds("it may be chosen again", func() bool { return s.standing(0).Good() })
}

func countNotReady(snap fleet.Snapshot) (n int) {
	for _, row := range snap.Instances {
		if row.NotReady {
			n++
		}
	}
	return n
}

func countReady(snap fleet.Snapshot) (n int) {
	for _, row := range snap.Instances {
		if row.Phase == fleet.Ready && !row.NotReady {
			n++
		}
	}
	return n
}

// The consumer is cut off from all its providers for more than twice budgets.unready. No instance is lost, and no
// provider counts as faulty.
func TestIsolatedConsumerLosesNothing(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	s := newHubScene(t, 2, unready(patience)).work()
	s.grow(6)
	s.allIn(fleet.Ready, 6)
	s.observe()
	s.knobs(0, sim.Knobs{Unreachable: true})
	s.knobs(1, sim.Knobs{Unreachable: true})
	s.until("no Node is ready", func(snap fleet.Snapshot) bool { return countNotReady(snap) == 6 })
	cut := time.Now()
	s.rounds("isolated for long", func() bool {
		return s.standing(0).Condition() == fleet.ConditionConsumerIsolated && time.Since(cut) > 2*patience
	})
	s.observe()
	snap := s.snapshot()
	require.Equal(t, 6, snap.Target)
	require.Equal(t, 6, countNotReady(snap))
	require.Equal(t, fleet.ConditionConsumerIsolated, s.standing(1).Condition())
	s.knobs(0, sim.Knobs{})
	s.knobs(1, sim.Knobs{})
	s.until("all ready again", func(snap fleet.Snapshot) bool { return countReady(snap) == 6 })
	s.rounds("all is well", func() bool { return s.standing(0).Good() && s.standing(1).Good() })
}

// Only one provider answers, and it has no holds. Its answer is sufficient evidence that this cluster is not cut off.
func TestAnsweringProviderDisprovesIsolation(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 2, unready(time.Second)).work()
	s.grow(4)
	require.Len(t, s.on(0, s.allIn(fleet.Ready, 4)), 4)
	s.observe()
	s.knobs(0, sim.Knobs{Unreachable: true})
	s.until("no Node is ready", func(snap fleet.Snapshot) bool { return countNotReady(snap) == 4 })
	s.rounds("a third, rounded up, is lost in one round", func() bool { return s.snapshot().Target == 2 })
	s.observe()
	require.Equal(t, 2, s.snapshot().Target, "and no more within a minute")
}

// The provider removes our account. Running Nodes are untouched, no new Node is created there, and the reason is
// reported.
func TestRefusedCredentialsLoseNothing(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 2, unready(time.Second)).work()
	s.grow(2)
	require.Len(t, s.on(0, s.allIn(fleet.Ready, 2)), 2)
	s.observe()
	s.knobs(0, sim.Knobs{Unauthorized: true})
	s.rounds("it is said", func() bool { return s.standing(0).Condition() == fleet.ConditionCredentialsRefused })
	s.observe()
	require.Equal(t, 2, countReady(s.snapshot()))
	s.grow(1)
	require.Len(t, s.on(1, s.allIn(fleet.Ready, 3)), 1, "nothing new is held")
	s.knobs(0, sim.Knobs{})
	s.rounds("well again", func() bool { return s.standing(0).Good() })
}

// The provider's administrators cordon our Tenant and later lift the cordon. In between, no new pods start on the
// Tenant's Node. When they drain the Tenant, or remove a slice, the instance is lost.
func TestNodesFollowTheirTenant(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1, unready(0)).work()
	s.grow(4)
	first := s.allIn(fleet.Ready, 4).Instances[0]
	object := fleet.ObjectName(first.Name, first.Attempt)
	cordoned := func(want bool) func() bool {
		return func() bool {
			w, err := s.world.Snapshot()
			require.NoError(t, err)
			node := w.Consumer.Nodes[object]
			_, ours := node.Annotations[backend.AnnotationCordoned]
			return node.Spec.Unschedulable == want && ours == want
		}
	}
	s.observe()
	require.NoError(t, s.world.Close(s.ctx, s.providers[0], fleet.RefusingCordoned))
	s.rounds("cordoned", cordoned(true))
	require.Equal(t, 4, s.snapshot().Target)
	require.NoError(t, s.world.Close(s.ctx, s.providers[0], ""))
	s.rounds("uncordoned", cordoned(false))

	require.NoError(t, s.world.LoseSlice(s.ctx, s.providers[0], object))
	s.rounds("one is lost", func() bool { return s.snapshot().Target == 3 })
	s.until("it is gone", func(snap fleet.Snapshot) bool { return len(snap.Instances) == 3 })
}
