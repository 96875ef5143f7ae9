package sim

import (
	"context"
	"fmt"
	"slices"
)

// PutPod puts a running pod on a Node. It replaces a pod of the same name.
func (w *World) PutPod(ctx context.Context, node string, pod Pod) error {
	return w.Edit(ctx, func(s *State) error {
		if s.Consumer.Nodes[node] == nil {
			return fmt.Errorf("put pod %s: there is no node %q", pod.Name, node)
		}
		pods := slices.DeleteFunc(s.Consumer.Pods[node], func(p Pod) bool { return p.Name == pod.Name })
		s.Consumer.Pods[node] = append(pods, pod)
		return nil
	})
}

// RemovePod removes a pod from a Node. An absent pod is success.
func (w *World) RemovePod(ctx context.Context, node, name string) error {
	return w.Edit(ctx, func(s *State) error {
		s.setPods(node, slices.DeleteFunc(s.Consumer.Pods[node], func(p Pod) bool { return p.Name == name }))
		return nil
	})
}
