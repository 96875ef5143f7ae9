package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Drain empties the attempt's node, see backend.Nodes.
func (b *Backend) Drain(ctx context.Context, a backend.Attempt, force bool, progress backend.Progress) error {
	return b.drive(ctx, backend.StageDrain, progress, func(s *State, _ time.Time) (*waiting, error) {
		return b.drain(s, a, force), nil
	})
}

func (b *Backend) drain(s *State, a backend.Attempt, force bool) *waiting {
	name := a.ObjectName()
	if virtual := s.Consumer.Virtuals[name]; virtual != nil && b.of(virtual.Labels, a) {
		delete(virtual.Annotations, backend.AnnotationStamp)
	}
	node := s.Consumer.Nodes[name]
	if node == nil || !b.of(node.Labels, a) {
		return nil
	}
	node.Spec.Unschedulable = true
	if p := s.providerOr(a.Provider.ID); p.Knobs.Hang == backend.StageDrain && !force {
		return &waiting{stage: backend.StageDrain, message: p.said("pods do not terminate")}
	}
	var left []Pod
	var guarded []string
	for _, pod := range s.Consumer.Pods[name] {
		switch {
		case pod.DaemonSet:
			left = append(left, pod)
		case pod.Protected && !force:
			left = append(left, pod)
			guarded = append(guarded, pod.Name)
		case pod.Held: // evicted, and kept in name only
			left = append(left, pod)
		}
	}
	s.setPods(name, left)
	if len(guarded) == 0 {
		return nil
	}
	return &waiting{
		stage:   backend.StageDrain,
		message: fmt.Sprintf("a disruption budget keeps %s on node %s", strings.Join(guarded, ", "), name),
	}
}

func (s *State) setPods(node string, pods []Pod) {
	if len(pods) == 0 {
		delete(s.Consumer.Pods, node)
		return
	}
	s.Consumer.Pods[node] = pods
}
