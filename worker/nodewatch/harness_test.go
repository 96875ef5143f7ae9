package nodewatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
)

const (
	waitLimit = time.Minute
	waitTick  = 2 * time.Millisecond
)

// scene is a simulated world with one provider. It records the facts that the groups receive; a fact is the signal that
// a Node was registered, is not ready, or is lost.
type scene struct {
	t       *testing.T
	world   *sim.World
	backend *sim.Backend
	peer    fleet.Provider
	groups  *groups
}

func newScene(t *testing.T) *scene {
	t.Helper()
	w := simworld.New(t, t.TempDir(), sim.Delays{}, simworld.Provider{Name: "milan"})
	s := &scene{
		t: t, world: w.World, backend: sim.New(w.World, sim.Options{Poll: waitTick}), groups: &groups{group: "edge"},
		peer: w.Provider("milan"),
	}
	require.NoError(t, s.backend.Establish(t.Context(), s.peer, nil))
	return s
}

// run starts a nodewatch, which ends with the test. The function change may modify its options.
func (s *scene) run(change ...func(*nodewatch.Options)) (stop func()) {
	o := nodewatch.Options{Watcher: s.backend, Groups: s.groups, RetryFirst: waitTick, RetryMax: 10 * waitTick}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); nodewatch.Run(ctx, o) }()
	stop = func() { cancel(); <-done }
	s.t.Cleanup(stop)
	return stop
}

func (s *scene) attempt(instance string) fleet.Attempt {
	return fleet.Attempt{Group: "edge", Instance: instance, Number: 1, Provider: s.peer}
}

func (s *scene) join(instance string) fleet.Attempt {
	s.t.Helper()
	a := s.attempt(instance)
	shape := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	_, err := s.backend.Join(s.t.Context(), backend.NodeSpec{Attempt: a, Shape: shape}, nil)
	require.NoError(s.t, err)
	return a
}

// ready returns the complete and ready node of an attempt.
func (s *scene) ready(instance string) fleet.Found {
	return fleet.Found{
		Attempt: s.attempt(instance), Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
	}
}

// script runs a nodewatch. The nodewatch receives only the nodes that the test passes to the returned function. The
// function returns when the nodewatch has processed the node.
func (s *scene) script(change ...func(*nodewatch.Options)) (tell func(...fleet.Found)) {
	found, n := make(chan fleet.Found), 0
	first := func(o *nodewatch.Options) { o.Watcher, o.Parallel = scripted{s.backend, found}, 1 }
	s.run(append([]func(*nodewatch.Options){first}, change...)...)
	return func(all ...fleet.Found) {
		for _, f := range all {
			found <- f
			n++
			mark := s.ready(fmt.Sprintf("edge-mark-%d", n)) // nodewatch keeps the order: when mark is reported, f was processed
			found <- mark
			s.told(mark.Attempt.Instance, fleet.Registered)
		}
	}
}

func (s *scene) node(a fleet.Attempt) *corev1.Node {
	s.t.Helper()
	state, err := s.world.Snapshot()
	require.NoError(s.t, err)
	return state.Consumer.Nodes[a.ObjectName()]
}

// stamped waits until the attempt's Node has its instance id.
func (s *scene) stamped(a fleet.Attempt) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		node := s.node(a)
		return node != nil && node.Spec.ProviderID == a.InstanceID()
	}, waitLimit, waitTick)
}

// told waits until the group has received exactly these facts about the instance, in this order.
func (s *scene) told(instance string, kinds ...fleet.EventKind) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return len(s.groups.of(instance)) >= len(kinds) }, waitLimit, waitTick,
		"%s: want %q, got %q", instance, kinds, s.groups.of(instance))
	require.Equal(s.t, kinds, s.groups.of(instance), "facts of %s", instance)
}

// groups is a nodewatch.Groups that records the facts. When an error is set, it refuses them with this error.
type groups struct {
	mu      sync.Mutex
	facts   []fleet.Fact
	refused int
	refuse  error
	group   string // the only group that exists
}

func (g *groups) Fact(_ context.Context, group string, f fleet.Fact) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse != nil {
		g.refused++
		return g.refuse
	}
	if f.Attempt != 1 || group != g.group {
		return errors.New("a fact without attempt, or for another group")
	}
	g.facts = append(g.facts, f)
	return nil
}

func (g *groups) of(instance string) (kinds []fleet.EventKind) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.facts {
		if f.Instance == instance {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

func (g *groups) confirms(instance string) (all []bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.facts {
		if f.Instance == instance {
			all = append(all, f.Confirms)
		}
	}
	return all
}

func (g *groups) setRefuse(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = err
}

func (g *groups) refusals() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}
