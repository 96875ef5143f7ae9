package sim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Kubelet simulates the virtual kubelet of a virtual node.
type Kubelet struct {
	// Node is the object that the kubelet registers.
	Node *corev1.Node `json:"node"`
	// Dead means that the kubelet no longer runs, while all objects stay.
	Dead bool `json:"dead,omitempty"`
	// Missing is the time since which the registered Node is missing.
	Missing *time.Time `json:"missing,omitempty"`
}

// ensureKubelet starts the virtual node's kubelet. The Node that this kubelet registers has all labels and taints
// from the moment of its creation.
func (b *Backend) ensureKubelet(s *State, spec backend.NodeSpec, now time.Time) {
	if name := spec.Attempt.ObjectName(); s.Consumer.Kubelets[name] == nil {
		s.Consumer.Kubelets[name] = &Kubelet{Node: b.newNode(spec, now)}
	}
}

// register creates the Node that the virtual node's kubelet registers: a new object, without instance id and not yet
// Ready.
func (s *State) register(name string, now time.Time) {
	kubelet := s.Consumer.Kubelets[name]
	node := kubelet.Node.DeepCopy()
	node.UID, node.CreationTimestamp = types.UID(newUID()), kubeTime(now)
	node.Status.Conditions = nil
	setCondition(node, corev1.ConditionFalse, "KubeletNotReady", now)
	s.Consumer.Nodes[name] = node
	kubelet.Missing = nil
}

// works reports whether the virtual node's kubelet runs and reaches its provider. Otherwise the kubelet neither renews
// the Node's lease nor registers a deleted Node again.
func (s *State) works(name string, p *Provider) bool {
	kubelet := s.Consumer.Kubelets[name]
	return (kubelet == nil || !kubelet.Dead) && !p.Knobs.Unreachable
}

// reregisters reports whether the kubelet must register its Node again, because the Node was Ready once and was
// deleted. A Node that was never Ready is registered by the stages of Join.
func (s *State) reregisters(name string) bool {
	slice, virtual := s.Consumer.Slices[name], s.Consumer.Virtuals[name]
	return s.Consumer.Kubelets[name] != nil && s.Consumer.Nodes[name] == nil && virtual != nil &&
		virtual.Deleting == nil && slice != nil &&
		slice.at(joinStages, backend.StageReady) && s.works(name, s.providerOr(virtual.Provider))
}

// runKubelets does the pending work of the virtual kubelets: if a Node has been missing for Delays.Register, it
// registers the Node again, as Ready. Nothing runs in the background, so Watch and List call it before they read. It
// writes to the world only when a Node must be registered.
func (w *World) runKubelets(ctx context.Context) error {
	now, due := time.Now(), false
	if _, err := w.view(func(s *State) {
		for name, kubelet := range s.Consumer.Kubelets {
			due = due || s.reregisters(name) && (kubelet.Missing == nil || !now.Before(kubelet.Missing.Add(s.Delays.Register)))
		}
	}); err != nil || !due {
		return err
	}
	return w.Edit(ctx, func(s *State) error {
		for name, kubelet := range s.Consumer.Kubelets {
			if !s.reregisters(name) {
				continue
			}
			if kubelet.Missing == nil { // DeleteNode did not remove it, so the delay begins now
				kubelet.miss(now)
			}
			if now.Before(kubelet.Missing.Add(s.Delays.Register)) {
				continue
			}
			s.register(name, now)
			setReady(s.Consumer.Nodes[name], true, now)
		}
		return nil
	})
}

func (k *Kubelet) miss(now time.Time) {
	at := now.UTC()
	k.Missing = &at
}
