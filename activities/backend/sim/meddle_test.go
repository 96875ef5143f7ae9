package sim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// PutForeignSlice makes a slice of another owner on an existing peering, on the consumer and on the provider.
func (w *World) PutForeignSlice(ctx context.Context, provider, name string) error {
	return w.Edit(ctx, func(s *State) error {
		if s.Providers[provider] == nil || s.Consumer.Peerings[provider] == nil {
			return fmt.Errorf("put slice %s: there is no peering with provider %q", name, provider)
		}
		if s.Consumer.Slices[name] != nil {
			return fmt.Errorf("put slice %s: there is one of that name", name)
		}
		object := newObject(provider, nil, nil, time.Now())
		s.Consumer.Slices[name] = &Slice{Object: object}
		s.RemoteSlices[remoteKey(provider, name)] = &RemoteSlice{Object: object}
		return nil
	})
}

// RemoveForeignSlice removes the slice of PutForeignSlice. An absent slice is not an error.
func (w *World) RemoveForeignSlice(ctx context.Context, provider, name string) error {
	return w.editProvider(ctx, provider, func(s *State, _ *Provider) {
		if slice := s.Consumer.Slices[name]; slice != nil && foreign(slice.Labels) {
			delete(s.Consumer.Slices, name)
		}
		key := remoteKey(provider, name)
		if slice := s.RemoteSlices[key]; slice != nil && foreign(slice.Labels) {
			delete(s.RemoteSlices, key)
		}
	})
}

// PutForeignPeering makes a working peering of another owner, on the consumer and on the provider.
func (w *World) PutForeignPeering(ctx context.Context, provider string) error {
	object := newObject(provider, nil, nil, time.Now())
	return w.editProvider(ctx, provider, func(s *State, p *Provider) {
		if s.Consumer.Peerings[provider] != nil {
			return
		}
		reached := Track{Stage: backend.StageReachable, Since: object.Created, Reached: true}
		s.Consumer.Peerings[provider] = &Peering{Object: object, Track: reached}
		tenant := object
		p.Tenant = &tenant
	})
}

// RemoveForeignPeering removes the peering of PutForeignPeering. An absent peering is not an error.
func (w *World) RemoveForeignPeering(ctx context.Context, provider string) error {
	return w.editProvider(ctx, provider, func(s *State, p *Provider) {
		if peering := s.Consumer.Peerings[provider]; peering != nil && foreign(peering.Labels) {
			delete(s.Consumer.Peerings, provider)
			p.Tenant = nil
		}
	})
}

// PutForeignNode makes a Ready Node that is not ours.
func (w *World) PutForeignNode(ctx context.Context, name string) error {
	now := time.Now()
	return w.Edit(ctx, func(s *State) error {
		if s.Consumer.Nodes[name] != nil {
			return fmt.Errorf("put node %s: there is one of that name", name)
		}
		node := &corev1.Node{}
		node.Name, node.UID, node.CreationTimestamp = name, types.UID(newUID()), kubeTime(now)
		setReady(node, true, now)
		s.Consumer.Nodes[name] = node
		return nil
	})
}

func foreign(labels map[string]string) bool {
	return labels[backend.LabelManagedBy] != backend.ManagedBy
}

// ForgetPeering removes all objects of a provider from the consumer, by force. The objects on the provider stay.
func (w *World) ForgetPeering(ctx context.Context, provider string) error {
	return w.editProvider(ctx, provider, func(s *State, _ *Provider) {
		for name, slice := range s.Consumer.Slices {
			if slice.Provider == provider {
				delete(s.Consumer.Slices, name)
				s.deleteVirtualNode(name)
				s.deleteNode(name)
			}
		}
		delete(s.Consumer.Peerings, provider)
	})
}
