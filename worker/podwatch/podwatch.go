// Package podwatch finds pending pods that Cluster Autoscaler misjudges: those that select nodes by a label that
// differs among the providers of one node group. It reports them, and decides nothing.
package podwatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/told"
)

const (
	// lookEvery is how often pods are listed. They are not watched: a list of those that are pending, from the API
	// server's cache, is small and takes no more rights than the worker has.
	lookEvery = 30 * time.Second
	lookFor   = 3 * time.Second
	// maxJudged bounds one look: pods that select by such a label, times the groups where it differs.
	maxJudged = 1000
)

// Watch looks at the pending pods now and then. The fields are set before its first Look, and then it may be used by
// many at once.
type Watch struct {
	Pods   typed.PodsGetter // nil: there are none
	Groups func(ctx context.Context) ([]fleet.Snapshot, error)
	Logger *slog.Logger

	mu     sync.Mutex // guards what follows
	looked time.Time
	found  []market.MisjudgedPod
	told   told.Once
}

// Of is how many pods each node group is misjudged for; a group with none is absent.
func (w *Watch) Of() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := map[string]int{}
	for _, p := range w.found {
		of[p.Group]++
	}
	return of
}

// Forget drops what was found, when this process no longer looks.
func (w *Watch) Forget() { w.keep(time.Time{}, nil, nil) }

// Look returns the misjudged pods by namespace and name, as they were at most half a minute ago. While pods or groups
// cannot be read there are none, which is logged.
func (w *Watch) Look(ctx context.Context, offers []market.Offer) []market.MisjudgedPod {
	if w.Pods == nil {
		return nil
	}
	now := time.Now()
	w.mu.Lock()
	looked, found := w.looked, w.found
	w.mu.Unlock()
	if !looked.IsZero() && now.Sub(looked) < lookEvery {
		return found
	}
	bounded, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	found, err := w.look(bounded, offers, now)
	if ctx.Err() != nil {
		return found
	}
	w.keep(now, found, err)
	return found
}

func (w *Watch) keep(looked time.Time, found []market.MisjudgedPod, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked, w.found = looked, found
	if w.told.IsNew(err) {
		w.Logger.Warn("pending pods cannot be judged", "error", err)
	}
}

func (w *Watch) look(ctx context.Context, offers []market.Offer, now time.Time) ([]market.MisjudgedPod, error) {
	list, err := w.Pods.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=,status.phase=" + string(corev1.PodPending), ResourceVersion: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("list pending pods: %w", err)
	}
	var pods []*corev1.Pod
	for n := range list.Items {
		if pod := &list.Items[n]; unschedulable(pod) && len(fit.Keys(pod)) > 0 {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil, nil
	}
	groups, err := w.Groups(ctx)
	if err != nil {
		return nil, fmt.Errorf("read node groups: %w", err)
	}
	return misjudged(pods, groups, offers, now), nil
}

// unschedulable reports whether the scheduler has found no node for the pod, and Cluster Autoscaler looks at it.
func unschedulable(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}
