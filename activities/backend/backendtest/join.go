package backendtest

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

func (s *suite) testJoinWithoutPeering(t *testing.T) {
	p := s.first()
	s.unpeered(t, p)
	a := s.attempt(instAbsent, 1, p)
	_, err := s.Backend.Join(s.prompt(t), s.spec(a), nil)
	require.ErrorIs(t, err, backend.ErrNotPeered)
	require.ErrorContains(t, err, p.ID, "the error says which provider")
	require.Empty(t, s.objectsOf(t, a))
}

// testJoinOtherKind checks that Join refuses a group with another kind of nodes. Otherwise CA would place pods on a
// Node that differs from its template.
func (s *suite) testJoinOtherKind(t *testing.T) {
	a := s.attempt(instAbsent, 1, s.first())
	s.established(t, a.Provider)
	spec := s.spec(a)
	if spec.Booking.Spec.Nodes = fleet.NodesMachine; s.Nodes == fleet.NodesMachine {
		spec.Booking.Spec.Nodes = fleet.NodesVirtual
	}
	_, err := s.Backend.Join(s.prompt(t), spec, nil)
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.Empty(t, s.objectsOf(t, a))
}

// testJoinCancelled checks that the error of a cancelled Join names the first unmet stage, and that the attempt can
// be undone or resumed.
func (s *suite) testJoinCancelled(t *testing.T) {
	a := s.attempt(instPartial, 1, s.first())
	s.established(t, a.Provider)
	for i, stopAt := range []backend.Stage{backend.StageSliceAuth, backend.StageReady} {
		ctx, stop := s.stoppable(t)
		rec := &recorder{each: func(stage backend.Stage) {
			if stageIndex(stage) >= stageIndex(stopAt) {
				stop()
			}
		}}
		_, err := s.Backend.Join(ctx, s.spec(a), rec.progress)
		stage := requireStopped(t, err)
		requireOrder(t, joinOrder, append(rec.stages, stage))
		if i == 0 { // the cancellation may have happened before any object was made
			s.left(t, a)
			require.Empty(t, s.objectsOf(t, a))
			continue
		}
		f := s.found(t, a)
		require.NotNil(t, f, "List shows what a cancelled Join has begun")
		require.True(t, f.Slice && f.Virtual, "%+v", f)
	}
	_, err := s.Other.Join(s.ctx(t), s.spec(a), nil)
	require.NoError(t, err, "another process resumes")
	require.Equal(t, a.InstanceID(), s.node(t, a).Spec.ProviderID)
	s.left(t, a)
}

func stageIndex(stage backend.Stage) int {
	for i, s := range joinOrder {
		if s == stage {
			return i
		}
	}
	return -1
}

func (s *suite) testJoinMakesNode(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	s.established(t, a.Provider)
	spec := s.spec(a)
	rec := &recorder{each: func(stage backend.Stage) {
		if node := s.node(t, a); node != nil {
			if !s.TaintsLate || node.Spec.ProviderID != "" {
				requireLooks(t, spec, node) // from its creation on
			}
			if node.Spec.ProviderID != "" {
				require.True(t, isReady(node), "stamped before it is Ready, at stage %s", stage)
				require.True(t, s.found(t, a).Marked, "stamped before the virtual node is marked")
			}
		}
	}}
	made, err := s.Backend.Join(s.ctx(t), spec, rec.progress)
	require.NoError(t, err)
	requireOrder(t, joinOrder, rec.stages)
	require.Equal(t, a.ObjectName(), made.Name)
	require.NotEmpty(t, made.UID)

	node := s.node(t, a)
	require.NotNil(t, node)
	requireLooks(t, spec, node)
	require.Equal(t, made.UID, string(node.UID))
	require.Equal(t, a.InstanceID(), node.Spec.ProviderID)
	require.True(t, isReady(node))
	require.False(t, node.Spec.Unschedulable)
	for key, want := range s.Shape {
		for what, list := range map[string]corev1.ResourceList{
			"capacity": node.Status.Capacity, "allocatable": node.Status.Allocatable,
		} {
			got := list[key]
			require.Zero(t, want.Cmp(got), "%s of %s: want %s, got %s", what, key, want.String(), got.String())
		}
	}
}

// requireLooks checks those labels of the node that CA compares: they must be exactly the expected labels. The
// expected labels are the labels of the group's template, and the labels that the backend and Kubernetes set
// automatically. The node must have the spec's taints, and may have more.
func requireLooks(t *testing.T, spec backend.NodeSpec, node *corev1.Node) {
	t.Helper()
	labels := maps.Clone(node.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return key == "storage.liqo.io/available" || strings.HasPrefix(key, "beta.kubernetes.io/")
	})
	want := template.Of(spec.Booking.Spec).Labels
	want[corev1.LabelHostname], want[template.ProviderLabel(spec.Booking.Spec)] = node.Name, spec.Attempt.Provider.ID
	require.Equal(t, want, labels)
	require.Equal(t, []string{spec.Attempt.Instance, strconv.Itoa(spec.Attempt.Number)},
		[]string{node.Annotations[backend.LabelInstance], node.Annotations[backend.LabelAttempt]}, "what is not on a label")
	require.Equal(t, []string{"0.25", fleet.DefaultCurrency},
		[]string{node.Annotations[backend.AnnotationHourlyPrice], node.Annotations[backend.AnnotationPriceCurrency]},
		"what it costs")
	for _, want := range spec.Taints {
		n := 0
		for _, got := range node.Spec.Taints {
			if got.MatchTaint(&want) && got.Value == want.Value {
				n++
			}
		}
		require.Equal(t, 1, n, "taint %s in %v", want.ToString(), node.Spec.Taints)
	}
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (s *suite) testJoinTwice(t *testing.T) {
	a := s.attempt(instFirst, 1, s.first())
	before := s.joined(t, a)
	objects := s.objects(t, a.Provider)
	after, err := s.Other.Join(s.ctx(t), s.spec(a), nil)
	require.NoError(t, err)
	require.Equal(t, before, after, "the same Node is adopted")
	require.Equal(t, objects, s.objects(t, a.Provider))
}

// testJoinConflict checks that Join neither adopts nor changes another owner's Node that has the attempt's name.
func (s *suite) testJoinConflict(t *testing.T) {
	if s.World.PutNode == nil {
		t.Skip("this harness has no World.PutNode")
	}
	a := s.attempt(instConflict, 1, s.first())
	s.established(t, a.Provider)
	undo, err := s.World.PutNode(s.prompt(t), a.ObjectName())
	require.NoError(t, err)
	s.undoLater(t, "PutNode", undo)
	before := s.node(t, a)
	_, err = s.Backend.Join(s.ctx(t), s.spec(a), nil)
	require.ErrorIs(t, err, backend.ErrConflict)
	require.NoError(t, s.Backend.Drain(s.ctx(t), a, true, nil))
	s.left(t, a)
	after := s.node(t, a)
	require.NotNil(t, after, "someone else's Node was removed")
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, before.Spec, after.Spec)
	require.NoError(t, undo(s.prompt(t)))
}

func (s *suite) testTwoNodes(t *testing.T) {
	if s.MaxNodes == 1 {
		t.Skip("this harness's providers carry one node each")
	}
	one, two := s.attempt(instFirst, 1, s.first()), s.attempt(instSecond, 1, s.first())
	s.joined(t, one)
	peering := without(s.objects(t, s.first()), one, two)
	s.joined(t, two)
	require.NotEqual(t, s.node(t, one).UID, s.node(t, two).UID)
	require.Equal(t, peering, without(s.objects(t, s.first()), one, two), "both share one peering")
}

// without returns the objects that do not belong to the attempts.
func without(objects []Object, attempts ...fleet.Attempt) []Object {
	var rest []Object
	for _, o := range objects {
		if !o.of(attempts...) {
			rest = append(rest, o)
		}
	}
	return rest
}
