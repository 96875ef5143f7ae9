package podwatch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/podwatch"
)

func list(cpu string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("16Gi"),
		"pods": resource.MustParse("110")}
}

func offer(provider, region string) market.Offer {
	return market.Offer{Name: provider, Provider: provider, Lendable: list("8"), Free: list("8"),
		Labels: map[string]string{"region": region, "country": "it"}}
}

// scene is one pending pod of an offloaded namespace, two providers in two regions, and one group over any of them.
type scene struct {
	pod    *corev1.Pod
	spec   fleet.GroupSpec
	offers []market.Offer
	log    testkit.Buffer

	mu    sync.Mutex // guards what follows
	err   error
	asked int
}

func newScene() *scene {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"region": "north"},
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}},
			Tolerations: []corev1.Toleration{{Key: "virtual-node.liqo.io/not-allowed", Operator: corev1.TolerationOpExists}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
	}
	return &scene{pod: pod, spec: fleet.GroupSpec{ID: "std", Max: 5, Shape: list("2")},
		offers: []market.Offer{offer("milan", "north"), offer("turin", "south")}}
}

// pods are those of the scene, in all namespaces.
type pods struct {
	typed.PodInterface
	scene *scene
}

func (p pods) Pods(string) typed.PodInterface { return p }

func (p pods) List(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	s := p.scene
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked++; o.FieldSelector != "spec.nodeName=,status.phase=Pending" || s.err != nil {
		return nil, s.err
	}
	return &corev1.PodList{Items: []corev1.Pod{*s.pod}}, nil
}

func (s *scene) watch() *podwatch.Watch {
	groups := func(context.Context) ([]fleet.Snapshot, error) {
		return []fleet.Snapshot{{Group: s.spec.ID, Spec: &s.spec}, {Group: "new"}}, nil
	}
	return &podwatch.Watch{Pods: pods{scene: s}, Groups: groups, Logger: slog.New(slog.NewTextHandler(&s.log, nil))}
}

// required selects by one expression.
func required(key string, operator corev1.NodeSelectorOperator, values ...string) func(*scene) {
	return func(s *scene) {
		s.pod.Spec.NodeSelector = nil
		s.pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "country", Operator: "Exists"},
					{Key: key, Operator: operator, Values: values}}}}}}}
	}
}

func TestWhichPodsAreMisjudged(t *testing.T) {
	on := func(label string, fits ...string) []market.MisjudgedPod {
		return []market.MisjudgedPod{{Pod: "shop/web-0", Group: "std", Labels: []string{label}, Fits: fits}}
	}
	const provider = "liqo.io/remote-cluster-id"
	selects := func(key, value string) func(*scene) {
		return func(s *scene) { s.pod.Spec.NodeSelector = map[string]string{key: value} }
	}
	for name, c := range map[string]struct {
		change func(*scene)
		want   []market.MisjudgedPod
	}{
		"by region":              {func(*scene) {}, on("region", "milan")},
		"by provider":            {selects(provider, "turin"), on(provider, "turin")},
		"affinity":               {required("region", "In", "north", "west"), on("region", "milan")},
		"affinity that excludes": {required(provider, "NotIn", "milan"), on(provider, "turin")},
		"a label that all have":  {selects("country", "it"), nil},
		"affinity that all meet": {required("region", "Exists"), nil},
		"one that nobody meets":  {selects("region", "west"), nil},
		"one that none has":      {selects("disk", "ssd"), nil},
		"no selector":            {func(s *scene) { s.pod.Spec.NodeSelector = nil }, nil},
		"one provider":           {func(s *scene) { s.spec.Provider = "milan" }, nil},
		"one offer":              {func(s *scene) { s.offers = s.offers[:1] }, nil},
		"no offers":              {func(s *scene) { s.offers = nil }, nil},
		"full providers are judged": {func(s *scene) { s.offers[1].Free = list("1") },
			on("region", "milan")},
		"one that the group does not use": {func(s *scene) {
			s.spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "north"}}
		}, nil},
		"too large":     {func(s *scene) { s.pod.Spec.Containers[0].Resources.Requests = list("3") }, nil},
		"not offloaded": {func(s *scene) { s.pod.Spec.Tolerations = nil }, nil},
		"scheduled":     {func(s *scene) { s.pod.Spec.NodeName = "n" }, nil},
		"deleted": {func(s *scene) {
			s.pod.DeletionTimestamp, s.pod.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"x/y"}
		}, nil},
		"not looked at": {func(s *scene) { s.pod.Status.Conditions = nil }, nil},
		"gated":         {func(s *scene) { s.pod.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			c.change(s)
			w := s.watch()
			require.Equal(t, c.want, w.Look(t.Context(), s.offers), s.log.String())
			want := map[string]int{}
			if c.want != nil {
				want["std"] = 1
			}
			require.Equal(t, want, w.Of())
			require.Empty(t, s.log.String())
		})
	}
}

// Pods are listed every half minute, however often it looks; what cannot be read is logged once, and is nothing.
func TestLooksNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene()
		w := s.watch()
		lists := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.asked
		}
		fail := func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.err = err
		}
		for range 5 {
			require.Len(t, w.Look(t.Context(), s.offers), 1)
		}
		require.Equal(t, 1, lists())
		fail(errors.New("forbidden"))
		for range 2 {
			time.Sleep(time.Minute) // the bubble's clock
			require.Empty(t, w.Look(t.Context(), s.offers))
			require.Empty(t, w.Of())
		}
		require.Equal(t, 3, lists())
		require.Equal(t, 1, strings.Count(s.log.String(), "list pending pods: forbidden"))
		fail(nil)
		time.Sleep(time.Minute)
		require.Len(t, w.Look(t.Context(), s.offers), 1)

		w.Forget()
		require.Empty(t, w.Of(), "another worker counts them")
		require.Len(t, w.Look(t.Context(), s.offers), 1, "begun again it looks at once")
		require.Equal(t, 5, lists())
	})
}

func TestWithoutAClusterThereAreNoPods(t *testing.T) {
	require.Empty(t, (&podwatch.Watch{}).Look(t.Context(), newScene().offers))
}
