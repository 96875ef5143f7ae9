package faults

import (
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
)

// others are the parts with workers of another cluster.
var others = []part{{"a second cluster on the hub", secondCluster}, {"worker with another kubeconfig", otherKubeconfig}}

// otherWorld creates an empty cluster with the same providers.
func (s *stack) otherWorld() *simworld.World {
	s.t.Helper()
	return simworld.New(s.t, filepath.Join(s.t.TempDir()), sim.Delays{},
		simworld.Provider{Name: "milan", Offer: "lendable: {cpu: 20, memory: 40Gi, pods: 1100}, price: 1"})
}

// secondCluster starts two workers of another cluster with the same hub. They end before they do anything.
func secondCluster(s *stack) {
	s.rest(5, nil)
	kept, other := s.nodes(), s.otherWorld()
	for n := range 2 {
		s.refuses(s.work(10+n, other))
	}
	s.during(70*time.Second, kept)
	s.rest(6, kept)
	s.rest(0, nil)
}

// otherKubeconfig restarts both workers with the access to another cluster, and minutes later with the right access.
func otherKubeconfig(s *stack) {
	s.rest(5, nil)
	kept, other := s.nodes(), s.otherWorld()
	for n, w := range s.workers {
		w.Kill()
		s.workers[n] = s.work(n, other)
		s.refuses(s.workers[n])
	}
	s.during(time.Duration(*minutes)*time.Minute, kept)
	for n := range s.workers {
		s.workers[n] = s.work(n, s.world)
	}
	s.rest(6, kept)
	s.during(70*time.Second, kept)
	s.rest(0, nil)
}

// refuses waits until a worker of another cluster has ended, and checks that its last line has the reason and the
// remedy.
func (s *stack) refuses(w *proc.Process) {
	s.t.Helper()
	s.ended(w)
	require.Error(s.t, w.Stop(time.Second), "its exit code")
	log := proc.Tail(w.Log, 1)
	require.Contains(s.t, log, "hub default belongs to the cluster with UID")
	require.Contains(s.t, log, "choose another hub, or adopt this one with: liqo-autoscaler temporal adopt-hub")
}
