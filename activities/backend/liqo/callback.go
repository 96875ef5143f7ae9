package liqo

import (
	"context"
	"fmt"
	"time"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// annotationCalled is an annotation of a virtual node. Its value is the time at which requestRegistration last made
// the virtual kubelet register the missing Node.
const annotationCalled = "liqo-autoscaler.io/called-back"

// requestRegistration makes the virtual kubelet register its missing Node now. On its own the kubelet would notice
// that the Node is missing when it next writes the Node's status, up to a minute later (virtual-kubelet
// node.DefaultStatusUpdateInterval). Liqo prepares an informer of the Node, but never starts this informer
// (pkg/virtualKubelet/liqoNodeProvider/resourceWatcher.go). Kubernetes deletes the pods of a missing Node after 40 s
// (k8s.io/kubernetes pkg/controller/podgc). The kubelet writes the status immediately when its VirtualNode changes,
// so requestRegistration changes an annotation that has no other purpose.
func (a *attempt) requestRegistration(ctx context.Context, virtual *offloadingv1beta1.VirtualNode) error {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	err := client.IgnoreNotFound(nodes.MergePatch(ctx, a.local, virtual, map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{annotationCalled: now}},
	}))
	if err != nil {
		return fmt.Errorf("call node back: %w", err)
	}
	return nil
}
