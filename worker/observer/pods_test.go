package observer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

func (h *hub) OffloadedPods(_ context.Context, visit func(*corev1.Pod)) error {
	h.mu.Lock()
	pods, err := slices.Clone(h.pods), h.fails["pods"]
	h.mu.Unlock()
	for _, p := range pods {
		visit(p.DeepCopy())
	}
	return err
}

func (h *hub) RemoveEndedPod(_ context.Context, pod *corev1.Pod) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(pod.Spec.Containers) > 0 {
		return errors.New("the observer keeps whole pods of its list")
	}
	h.pods = slices.DeleteFunc(h.pods, func(p *corev1.Pod) bool { return p.UID == pod.UID })
	h.removed = append(h.removed, pod.Name)
	return nil
}

// offloaded returns a pod that requests 600m CPU. The pod is on the node of instance a-t0-1, and this node has 1 CPU.
func offloaded(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: "lca-a-t0-1-1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("600m")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if change != nil {
		change(p)
	}
	return p
}

func noImage(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
}

// ofJob makes the pod a failed pod of a Job.
func ofJob(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: ptr.To(true)}}
	p.Status.Phase, p.CreationTimestamp = corev1.PodFailed, metav1.NewTime(time.Unix(2, 0))
}

func withPods(pods ...*corev1.Pod) *hub {
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
	g := h.groups["a"]
	g.Spec.Shape = corev1.ResourceList{"cpu": resource.MustParse("1")}
	h.found = []fleet.Found{whole(attempt("a-t0-1"))}
	h.pods = pods
	return h
}

// A pod that does not run is counted as not running after a minute, and as overdue after budgets.podStart. A single
// failed list changes nothing. Pods on other nodes, running pods and ended pods do not count.
func TestPodsThatDoNotStartAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elsewhere := offloaded("elsewhere", noImage)
		elsewhere.Spec.NodeName = "of-another-hub"
		h := withPods(offloaded("web", noImage), offloaded("refused", nil), elsewhere,
			offloaded("ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		h.groups["a"].Spec.Shape["cpu"] = resource.MustParse("2")
		o := h.observer()
		o.Every = time.Hour
		leads(t, o, func(next func() error) {
			rows := func() []observer.PodsWaiting {
				rows, known := o.Pods.Waiting(time.Now())
				require.True(t, known)
				return rows
			}
			began := time.Now()
			require.Empty(t, rows())
			<-time.After(time.Minute)
			require.NoError(t, next())
			want := []observer.PodsWaiting{
				{Provider: "milan", Group: "a", Verdict: boundpod.NotStarting, Count: 1, Pod: "shop/web", Since: began,
					Why: "container main waits: ImagePullBackOff"},
				{Provider: "milan", Group: "a", Verdict: boundpod.RefusedByProvider, Count: 1, Pod: "shop/refused", Since: began,
					Why: "the provider has not accepted it: liqo-autoscaler explain pod shows the reason"},
			}
			require.Equal(t, want, rows())
			h.between(func() { h.fails["pods"] = errors.New("no answer") })
			<-time.After(time.Minute)
			require.NoError(t, next(), "a list of pods that fails does not fail the round")
			require.Equal(t, want, rows())
			h.between(func() { delete(h.fails, "pods") })
			<-time.After(8 * time.Minute)
			require.NoError(t, next())
			require.Equal(t, 1, rows()[0].Overdue)
			h.between(func() { h.pods = nil })
			require.NoError(t, next())
			require.Empty(t, rows())
		})
		_, known := o.Pods.Waiting(time.Now().Add(time.Hour))
		require.False(t, known, "another worker may lead since")
	})
}

// An ended pod of a Job takes quota that another pod needs on its node. The observer deletes the ended pod when its Job
// has counted it and the other pod was refused in two rounds. It keeps an ended pod that belongs to no Job, and keeps
// all ended pods while all pods fit.
func TestEndedPodsOfJobsFreeTheirQuota(t *testing.T) {
	counting := func(p *corev1.Pod) {
		ofJob(p)
		p.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	}
	bare := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	large := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }
	small := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("100m") }
	older := func(p *corev1.Pod) {
		ofJob(p)
		p.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	}
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		verdict boundpod.Verdict
		removed []string
	}{
		"a retry": {[]*corev1.Pod{offloaded("retry", nil), offloaded("failed", ofJob)}, boundpod.HoldsNoQuota,
			[]string{"failed"}},
		"the oldest, as long as it helps": {[]*corev1.Pod{offloaded("retry", nil), offloaded("two", ofJob),
			offloaded("one", older)}, boundpod.HoldsNoQuota, []string{"one", "two"}},
		"not counted yet": {[]*corev1.Pod{offloaded("retry", nil), offloaded("failed", counting)}, boundpod.HoldsNoQuota,
			nil},
		"a pod of no Job": {[]*corev1.Pod{offloaded("retry", nil), offloaded("failed", bare)}, boundpod.HoldsNoQuota, nil},
		"it would not fit alone": {[]*corev1.Pod{offloaded("retry", large), offloaded("failed", ofJob)},
			boundpod.HoldsNoQuota, nil},
		"others refused hold nothing": {[]*corev1.Pod{offloaded("privileged", nil), offloaded("hostpath", nil),
			offloaded("failed", func(p *corev1.Pod) { ofJob(p); small(p) })}, boundpod.RefusedByProvider, nil},
		"there is room": {[]*corev1.Pod{offloaded("retry", small),
			offloaded("failed", func(p *corev1.Pod) { ofJob(p); small(p) })}, boundpod.RefusedByProvider, nil},
		"no pod waits": {[]*corev1.Pod{offloaded("runs", func(p *corev1.Pod) {
			noImage(p)
			p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		}), offloaded("failed", ofJob)}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := withPods(c.pods...)
				o := h.observer()
				o.Every = time.Hour
				leads(t, o, func(next func() error) {
					require.Empty(t, h.removed, "seen once")
					<-time.After(time.Minute)
					require.NoError(t, next())
					rows, _ := o.Pods.Waiting(time.Now())
					if c.verdict == "" {
						require.Empty(t, rows)
					} else {
						require.Equal(t, c.verdict, rows[0].Verdict)
					}
				})
				require.Equal(t, c.removed, h.removed)
				require.Equal(t, len(c.removed) > 0, len(h.events) > 0)
			})
		})
	}
}
