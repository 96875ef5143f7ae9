package backendtest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func (s *suite) needPods(t *testing.T) {
	t.Helper()
	if s.World.PutPod == nil || s.World.Pods == nil {
		t.Skip("this harness has no World.PutPod and World.Pods")
	}
}

func (s *suite) putPods(t *testing.T, a fleet.Attempt, pods ...Pod) {
	t.Helper()
	for _, pod := range pods {
		require.NoError(t, s.World.PutPod(s.ctx(t), a.ObjectName(), pod), "put pod %s", pod.Name)
	}
	names := s.pods(t, a)
	for _, pod := range pods {
		require.Contains(t, names, pod.Name)
	}
}

func (s *suite) pods(t *testing.T, a fleet.Attempt) []string {
	t.Helper()
	names, err := s.World.Pods(s.prompt(t), a.ObjectName())
	require.NoError(t, err)
	return names
}

func (s *suite) testDrainEvicts(t *testing.T) {
	s.needPods(t)
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	s.putPods(t, a, Pod{Name: "plain"}, Pod{Name: "daemon", DaemonSet: true})
	require.NoError(t, s.Backend.Drain(s.ctx(t), a, false, nil))
	require.Equal(t, []string{"daemon"}, s.pods(t, a))
	require.True(t, s.node(t, a).Spec.Unschedulable, "cordoned")
	f := s.found(t, a)
	require.False(t, f.Marked, "the mark is removed before anything else: no one stamps a draining node")
	require.True(t, f.Node && f.Slice, "a drained node still exists")

	require.NoError(t, s.Other.Drain(s.ctx(t), a, false, nil), "twice")
}

func (s *suite) testDrainForce(t *testing.T) {
	s.needPods(t)
	a := s.attempt(instFirst, 1, s.first())
	s.joined(t, a)
	s.putPods(t, a, Pod{Name: "guarded", Protected: true})
	ctx, stop := s.stoppable(t)
	rec := &recorder{}
	rec.each = func(stage backend.Stage) {
		if rec.count(stage) > 1 {
			stop() // the second report: the drain waits for the budget
		}
	}
	stage := requireStopped(t, s.Backend.Drain(ctx, a, false, rec.progress))
	require.Equal(t, backend.StageDrain, stage)
	require.Contains(t, s.pods(t, a), "guarded", "the disruption budget was overridden without force")

	require.Empty(t, deleted(s.node(t, a)), "without force CA is told nothing")

	require.NoError(t, s.Backend.Drain(s.ctx(t), a, true, nil))
	require.NotContains(t, s.pods(t, a), "guarded")
	taints := deleted(s.node(t, a))
	require.Len(t, taints, 1)
	require.Equal(t, corev1.TaintEffectNoSchedule, taints[0].Effect)
	seconds, err := strconv.ParseInt(taints[0].Value, 10, 64)
	require.NoError(t, err, "CA reads when that was")
	require.WithinDuration(t, time.Now(), time.Unix(seconds, 0), time.Hour)
	require.NoError(t, s.Other.Drain(s.ctx(t), a, true, nil), "twice")
	require.Equal(t, taints, deleted(s.node(t, a)))
	s.left(t, a) // the taint stays until the Node is gone
}

// deleted returns the taints that make CA count a Node as deleted.
func deleted(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
		return taint.Key != backend.TaintToBeDeleted
	})
}
