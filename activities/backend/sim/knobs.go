package sim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// AddProvider adds a provider cluster, or sets the capacity of an existing provider. A nil capacity means no limit.
func (w *World) AddProvider(ctx context.Context, id string, capacity corev1.ResourceList) error {
	if id == "" {
		return fmt.Errorf("add provider: the id is empty")
	}
	return w.Edit(ctx, func(s *State) error {
		if s.Providers[id] == nil {
			s.Providers[id] = &Provider{ID: id}
		}
		s.Providers[id].Capacity = capacity
		return nil
	})
}

// Kubeconfig returns the content of a credentials file that names the provider.
func (w *World) Kubeconfig(id string) []byte {
	return fmt.Appendf(nil, "simulatedProvider: %s\n", id)
}

// SetDelays sets the durations of the verbs, for all processes, with immediate effect.
func (w *World) SetDelays(ctx context.Context, delays Delays) error {
	return w.Edit(ctx, func(s *State) error {
		s.Delays = delays
		return nil
	})
}

// SetKnobs replaces the provider's faults. Knobs{} removes them all. When the provider becomes unreachable, SetKnobs
// sets its nodes to Unknown, as the node lifecycle controller would. When the provider becomes reachable again,
// SetKnobs sets them to Ready.
func (w *World) SetKnobs(ctx context.Context, provider string, knobs Knobs) error {
	return w.editProvider(ctx, provider, func(s *State, p *Provider) {
		if p.Knobs.Unreachable != knobs.Unreachable {
			p.Knobs = knobs
			s.updateNodes(provider, time.Now())
		}
		p.Knobs = knobs
	})
}

func (w *World) editProvider(ctx context.Context, id string, change func(*State, *Provider)) error {
	return w.Edit(ctx, func(s *State) error {
		p := s.Providers[id]
		if p == nil {
			return fmt.Errorf("edit provider %q: there is none of that name in this world", id)
		}
		change(s, p)
		return nil
	})
}

// setReady sets the Node's Ready condition: True if ready, otherwise Unknown.
func setReady(node *corev1.Node, ready bool, now time.Time) {
	status, reason := corev1.ConditionTrue, "KubeletReady"
	if !ready {
		status, reason = corev1.ConditionUnknown, "NodeStatusUnknown"
	}
	setCondition(node, status, reason, now)
}

func setCondition(node *corev1.Node, status corev1.ConditionStatus, reason string, now time.Time) {
	at := kubeTime(now)
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type == corev1.NodeReady {
			if c.Status != status {
				c.Status, c.Reason, c.LastTransitionTime = status, reason, at
			}
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: reason, LastTransitionTime: at,
	})
}

func isReady(node *corev1.Node) bool {
	ready, _ := nodes.Ready(node)
	return ready
}
