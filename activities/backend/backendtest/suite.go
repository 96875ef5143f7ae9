package backendtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These are the suite's instances. The number is the sequence number in the instance's name.
const (
	instFirst    = 1 // used by most subtests
	instSecond   = 2 // on the first instance's peering; its second attempt uses the other provider
	instPartial  = 3 // cancelled halfway
	instConflict = 4
	instDenied   = 5
	instShort    = 6
	instCut      = 7
	instForeign  = 8 // on a peering made by hand
	instAbsent   = 9 // never made
	instWatched  = 10
	instBeside   = 11 // its second attempt uses the other provider while the first attempt is half made
	instPasses   = 12
	instRefused  = 13
	instFull     = 14
	instLeft     = 15
)

var errStop = errors.New("stopped by the suite")

type suite struct {
	Harness
	epoch string
}

func (s *suite) first() fleet.Provider  { return s.Providers[0] }
func (s *suite) second() fleet.Provider { return s.Providers[1] }

// ctx returns the context for a verb that must end. It ends after Harness.Bound.
func (s *suite) ctx(t *testing.T) context.Context { return bounded(t, s.Bound) }

// prompt returns the context for a verb that must not wait. It ends after Harness.Prompt.
func (s *suite) prompt(t *testing.T) context.Context { return bounded(t, s.Prompt) }

func bounded(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func (s *suite) attempt(instance, number int, p fleet.Provider) fleet.Attempt {
	return fleet.Attempt{
		Group: s.Group, Instance: fleet.InstanceName(s.Group, s.epoch, instance), Number: number, Provider: p,
	}
}

func (s *suite) spec(a fleet.Attempt) backend.NodeSpec {
	group := fleet.InstanceSpec{
		ID: s.Group, Shape: s.Shape, Nodes: s.Nodes, Labels: map[string]string{"contract.example.org/group": s.Group},
		Taints: []corev1.Taint{{Key: "contract.example.org/taint", Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
	}
	return backend.NodeSpec{
		Attempt: a, Shape: s.Shape, Labels: group.NodeLabels(), Taints: group.NodeTaints(),
		Booking: fleet.Booking{Spec: group, BookedAt: time.Unix(1_700_000_000, 0).UTC(), Hourly: 0.25},
	}
}

// established ensures the peering with p.
func (s *suite) established(t *testing.T, p fleet.Provider) {
	t.Helper()
	require.NoError(t, s.Backend.Establish(s.ctx(t), p, nil), "establish %s", p.ID)
}

// joined ensures the attempt's node and its peering.
func (s *suite) joined(t *testing.T, a fleet.Attempt) backend.Node {
	t.Helper()
	s.established(t, a.Provider)
	node, err := s.Backend.Join(s.ctx(t), s.spec(a), nil)
	require.NoError(t, err, "join %s", a.ObjectName())
	return node
}

// left removes the attempt's objects, if any exist.
func (s *suite) left(t *testing.T, a fleet.Attempt) {
	t.Helper()
	require.NoError(t, s.Backend.Return(s.ctx(t), a, nil), "leave %s", a.ObjectName())
}

// unpeered ensures that the provider carries no object of the suite.
func (s *suite) unpeered(t *testing.T, p fleet.Provider) {
	t.Helper()
	found, err := s.Backend.List(s.prompt(t), backend.Scope{Group: s.Group})
	require.NoError(t, err)
	for _, f := range found {
		if f.Attempt.Provider.ID == p.ID {
			s.left(t, f.Attempt)
		}
	}
	require.NoError(t, s.Backend.RemovePeering(s.ctx(t), p, nil), "unpeer %s", p.ID)
}

// objects returns a sorted list of our objects on the provider, and of our objects on other clusters that belong to
// this provider.
func (s *suite) objects(t *testing.T, p fleet.Provider) []Object {
	t.Helper()
	all, err := s.World.Objects(s.prompt(t))
	require.NoError(t, err)
	return slices.DeleteFunc(sorted(all), func(o Object) bool { return o.Provider != p.ID && o.Where != p.ID })
}

// objectsOf returns a sorted list of the attempt's objects on all clusters.
func (s *suite) objectsOf(t *testing.T, a fleet.Attempt) []Object {
	t.Helper()
	all, err := s.World.Objects(s.prompt(t))
	require.NoError(t, err)
	return slices.DeleteFunc(sorted(all), func(o Object) bool { return !strings.Contains(o.Name, a.ObjectName()) })
}

func sorted(objects []Object) []Object {
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b Object) int { return strings.Compare(a.key(), b.key()) })
	return objects
}

func (o Object) key() string { return o.Where + "\x00" + o.Kind + "\x00" + o.Name }

// node reads the attempt's Node. It returns nil for a missing Node.
func (s *suite) node(t *testing.T, a fleet.Attempt) *corev1.Node {
	t.Helper()
	node, err := s.World.Node(s.prompt(t), a.ObjectName())
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return node
}

// found returns the attempt's entry in the result of List, or nil when the result does not contain the attempt.
func (s *suite) found(t *testing.T, a fleet.Attempt) *fleet.Found {
	t.Helper()
	list, err := s.Other.List(s.prompt(t), backend.Scope{Group: a.Group})
	require.NoError(t, err)
	for i := range list {
		if list[i].Attempt.ObjectName() == a.ObjectName() {
			return &list[i]
		}
	}
	return nil
}

// with calls a function of World for the provider. Its effect is reverted at the end of the subtest, unless the
// subtest has reverted it before.
func (s *suite) with(
	t *testing.T, p fleet.Provider, name string, do func(context.Context, fleet.Provider) (Undo, error),
) Undo {
	t.Helper()
	if do == nil {
		t.Skipf("this harness has no World.%s", name)
	}
	undo, err := do(s.ctx(t), p)
	require.NoError(t, err, "World.%s", name)
	s.undoLater(t, name, undo)
	return undo
}

func (s *suite) undoLater(t *testing.T, name string, undo Undo) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
		defer cancel()
		if err := undo(ctx); err != nil {
			t.Errorf("undo World.%s: %v", name, err)
		}
	})
}
