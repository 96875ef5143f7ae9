package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Drain removes the pods from the attempt's node, see backend.Nodes.
func (b *Backend) Drain(ctx context.Context, a fleet.Attempt, force bool, progress backend.Progress) error {
	return b.drive(ctx, attemptKeys(a), backend.StageDrain, progress, func(s *State, _ time.Time) (*waiting, error) {
		return b.drain(s, a, force), nil
	})
}

// drain removes the mark, cordons the node and evicts its pods, all in one change of the world.
func (b *Backend) drain(s *State, a fleet.Attempt, force bool) *waiting {
	name := a.ObjectName()
	if virtual := s.Consumer.Virtuals[name]; virtual != nil && b.of(virtual.Labels, a) {
		delete(virtual.Annotations, backend.AnnotationStamp)
	}
	node := s.Consumer.Nodes[name]
	if node == nil || !b.of(node.Annotations, a) {
		return nil
	}
	node.Spec.Unschedulable = true
	if force {
		backend.TaintAsDeleted(node, time.Now())
	}
	if p := s.providerOr(a.Provider.ID); p.Knobs.Hang == backend.StageDrain && !force {
		return &waiting{stage: backend.StageDrain, message: p.describe("pods do not terminate")}
	}
	guarded := s.evict(name, force)
	if len(guarded) == 0 {
		return nil
	}
	return &waiting{
		stage:   backend.StageDrain,
		message: fmt.Sprintf("a disruption budget keeps %s on node %s", strings.Join(guarded, ", "), name),
	}
}

// evict removes the pods of the node and returns the names of the pods that a disruption budget keeps.
func (s *State) evict(node string, force bool) (guarded []string) {
	var left []Pod
	for _, pod := range s.Consumer.Pods[node] {
		switch {
		case pod.DaemonSet:
			left = append(left, pod)
		case pod.Protected && !force:
			left = append(left, pod)
			guarded = append(guarded, pod.Name)
		case pod.Held: // the pod is evicted, but a finalizer keeps the object
			left = append(left, pod)
		}
	}
	s.setPods(node, left)
	return guarded
}

func (s *State) setPods(node string, pods []Pod) {
	if len(pods) == 0 {
		delete(s.Consumer.Pods, node)
		return
	}
	s.Consumer.Pods[node] = pods
}
