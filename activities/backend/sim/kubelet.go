package sim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Kubelet is the virtual kubelet of a virtual node.
type Kubelet struct {
	// Node is the Node as it registers it.
	Node *corev1.Node `json:"node"`
	// Dead: it no longer runs, while all objects stay.
	Dead bool `json:"dead,omitempty"`
	// Missing is since when the Node it has registered is gone.
	Missing *time.Time `json:"missing,omitempty"`
}

// ensureKubelet starts the virtual node's kubelet; Node registers with the first version of all labels and taints.
func (b *Backend) ensureKubelet(s *State, spec backend.NodeSpec, now time.Time) {
	if name := spec.Attempt.ObjectName(); s.Consumer.Kubelets[name] == nil {
		s.Consumer.Kubelets[name] = &Kubelet{Node: b.newNode(spec, now)}
	}
}

// register makes the Node that the virtual node's kubelet stands for: a new object, without instance id and not yet
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

// works reports whether the virtual node's kubelet runs and reaches its provider; otherwise nobody renews the Node's
// lease, and nobody registers it anew.
func (s *State) works(name string, p *Provider) bool {
	kubelet := s.Consumer.Kubelets[name]
	return (kubelet == nil || !kubelet.Dead) && !p.Knobs.Unreachable
}

// reregisters reports whether the kubelet has a Node to register anew: one that was Ready once and that somebody
// deleted. Before that the stages of Join rule.
func (s *State) reregisters(name string) bool {
	slice, virtual := s.Consumer.Slices[name], s.Consumer.Virtuals[name]
	return s.Consumer.Kubelets[name] != nil && s.Consumer.Nodes[name] == nil && virtual != nil &&
		virtual.Deleting == nil && slice != nil &&
		slice.at(joinStages, backend.StageReady) && s.works(name, s.providerOr(virtual.Provider))
}

// runKubelets does what the virtual kubelets have to do: a Node that is missing for the delay Register is there again
// and Ready. Nothing runs in the background, so it is called by whoever looks (Watch, List), and changes the world only
// then.
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
			if kubelet.Missing == nil { // removed by other means than DeleteNode: missing since it was noticed
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
