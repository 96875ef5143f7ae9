package liqo

import (
	"context"
	"fmt"
	"time"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// annotationCalled is on a virtual node: when its missing Node was last called back.
const annotationCalled = "liqo-autoscaler.io/called-back"

// callBack has the virtual kubelet register its missing Node now. By itself it would notice when it next writes the
// Node's status, up to a minute later (virtual-kubelet node.DefaultStatusUpdateInterval; Liqo prepares an informer of
// its Node and never starts it, pkg/virtualKubelet/liqoNodeProvider/resourceWatcher.go), and Kubernetes collects the
// pods of a missing Node after 40 s (k8s.io/kubernetes pkg/controller/podgc). It writes the status at once when its
// VirtualNode changes, so that is changed, in nothing that matters.
func (a *attempt) callBack(ctx context.Context, virtual *offloadingv1beta1.VirtualNode) error {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	err := client.IgnoreNotFound(nodes.MergePatch(ctx, a.local, virtual, map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{annotationCalled: now}},
	}))
	if err != nil {
		return fmt.Errorf("call node back: %w", err)
	}
	return nil
}
