package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// DeleteNode removes a Node object of any owner, and the pods on the Node, as a user or a cloud controller would. If
// the Node was Ready, its virtual kubelet registers it again after Delays.Register, with a new UID and without the
// instance id.
func (w *World) DeleteNode(ctx context.Context, name string) error {
	return w.Edit(ctx, func(s *State) error {
		if kubelet := s.Consumer.Kubelets[name]; kubelet != nil && s.Consumer.Nodes[name] != nil {
			kubelet.miss(time.Now())
		}
		s.deleteNode(name)
		return nil
	})
}

// DeleteVirtualNode immediately removes a virtual node with its kubelet and Node, as a user would. The slice stays on
// the consumer and on the provider. An absent virtual node is success.
func (w *World) DeleteVirtualNode(ctx context.Context, name string) error {
	return w.Edit(ctx, func(s *State) error {
		s.deleteVirtualNode(name)
		return nil
	})
}

// DeleteSlice immediately removes a slice on the consumer and on the provider, with its virtual node, as a user
// would. While the provider is unreachable, DeleteSlice only marks the slice as terminating. Its virtual node then
// stays as it is: the slice owns the virtual node, and Kubernetes removes an object only after its owner. An absent
// slice is success.
func (w *World) DeleteSlice(ctx context.Context, name string) error {
	return w.Edit(ctx, func(s *State) error {
		slice := s.Consumer.Slices[name]
		if slice == nil {
			return nil
		}
		p := s.providerOr(slice.Provider)
		if p.Knobs.Unreachable {
			slice.delete(time.Now())
			return nil
		}
		delete(s.Consumer.Slices, name)
		delete(s.RemoteSlices, remoteKey(p.ID, name))
		s.deleteVirtualNode(name)
		return nil
	})
}

// KillKubelet stops the virtual kubelet of a virtual node. All objects stay. Its Node becomes Unknown immediately, and
// not after 40 s as in a real cluster.
func (w *World) KillKubelet(ctx context.Context, virtualNode string) error {
	return w.setDead(ctx, virtualNode, true)
}

// ReviveKubelet starts the virtual kubelet of a virtual node again. Its Node becomes Ready if the provider can be
// reached.
func (w *World) ReviveKubelet(ctx context.Context, virtualNode string) error {
	return w.setDead(ctx, virtualNode, false)
}

func (w *World) setDead(ctx context.Context, name string, dead bool) error {
	return w.Edit(ctx, func(s *State) error {
		kubelet, virtual := s.Consumer.Kubelets[name], s.Consumer.Virtuals[name]
		if kubelet == nil || virtual == nil {
			return fmt.Errorf("edit virtual kubelet: there is no virtual node %q", name)
		}
		kubelet.Dead = dead
		s.heartbeat(name, time.Now())
		return nil
	})
}

// heartbeat updates the Ready condition of a virtual node's Node to the state of the virtual kubelet. It does nothing
// if the Node was never Ready.
func (s *State) heartbeat(name string, now time.Time) {
	node, slice := s.Consumer.Nodes[name], s.Consumer.Slices[name]
	if node != nil && slice != nil && slice.at(joinStages, backend.StageReady) {
		setReady(node, s.works(name, s.providerOr(slice.Provider)), now)
	}
}

func (s *State) deleteVirtualNode(name string) {
	if s.Consumer.Virtuals[name] == nil {
		return
	}
	delete(s.Consumer.Virtuals, name)
	delete(s.Consumer.Kubelets, name)
	s.deleteNode(name)
}

func (s *State) deleteNode(name string) {
	delete(s.Consumer.Nodes, name)
	delete(s.Consumer.Pods, name)
}
