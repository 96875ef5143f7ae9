package liqo

import (
	"context"
	"fmt"
	"time"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// stampStep marks the virtual node and, as the last step, writes the instance id into the Node. It may mark the
// virtual node while the Node still has Kubernetes' taint not-ready, and stamps the Node once the taint is gone. A
// new Node's condition is Unknown at first, so Kubernetes may still replace the taint not-ready by the taint
// unreachable. If a Ready Node has the taint unreachable, CA considers the Node full and requests another one.
func (j *join) stampStep(ctx context.Context) (bool, string, error) {
	if err := j.readNode(ctx); err != nil {
		return false, "", err
	}
	if !j.settled || !j.marks(j.virtual) {
		if waits, err := j.settle(ctx); err != nil || waits != "" {
			return false, waits, err
		}
		j.settled = true
	}
	if id := j.node.Spec.ProviderID; id != "" && id != j.InstanceID() {
		return false, "", foreignProviderID(j.node)
	}
	lacks := nodes.Unfinished(j.node, j.spec)
	if lacks == "" && j.node.Spec.ProviderID == "" {
		if err := j.stamp(ctx, j.node); err != nil {
			return false, "", err
		}
		lacks = nodes.Unfinished(j.node, j.spec)
	}
	return lacks == "", lacks, nil
}

// settle marks this attempt's virtual node, so that its Node becomes the instance's node. The result waits is the
// name of another attempt that must be removed first, or "".
func (j *join) settle(ctx context.Context) (waits string, err error) {
	for { // the search is repeated after the mark: if two attempts mark concurrently, each finds the other
		marked := j.marks(j.virtual)
		if marked || time.Since(j.soleAt) >= allowedFor {
			if waits, err := j.otherAttempt(ctx); err != nil || waits != "" {
				return waits, err
			}
		}
		if marked {
			return "", nil
		}
		if err := nodes.MergePatch(ctx, j.local, j.virtual, map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{backend.AnnotationStamp: j.InstanceID()}}}); err != nil {
			return "", fmt.Errorf("mark virtual node: %w", err)
		}
	}
}

// searchAhead searches for other attempts while Join waits for another reason, so that the mark need not wait for the
// search. The result is used only while it is recent.
func (j *join) searchAhead(ctx context.Context) {
	if began := time.Now(); began.Sub(j.soleAt) > allowedFor/2 {
		if waits, err := j.otherAttempt(ctx); err == nil && waits == "" {
			j.soleAt = began
		}
	}
}

// stamp writes the instance id into a Node that has none. The API server allows a providerID to be set once, and
// refuses the change on a Node that was replaced since it was read. If another actor was faster, stamp returns
// ErrConflict.
func (a *attempt) stamp(ctx context.Context, node *corev1.Node) error {
	err := nodes.MergePatch(ctx, a.local, node, map[string]any{
		"metadata": map[string]any{"uid": node.UID},
		"spec":     map[string]any{"providerID": a.InstanceID()},
	})
	if apierrors.IsInvalid(err) {
		err = a.local.Get(ctx, client.ObjectKeyFromObject(node), node)
		if err == nil && node.Spec.ProviderID != a.InstanceID() {
			return foreignProviderID(node)
		}
	}
	if err != nil {
		return fmt.Errorf("set providerID: %w", err)
	}
	return nil
}

func foreignProviderID(node *corev1.Node) error {
	return errorf(backend.ErrConflict,
		"somebody has set providerID %q on Node %s: is a cloud controller manager at work on virtual nodes?",
		node.Spec.ProviderID, node.Name)
}

// marks reports whether the virtual node carries the instance's mark.
func (a *attempt) marks(virtual *offloadingv1beta1.VirtualNode) bool {
	return virtual.Annotations[backend.AnnotationStamp] == a.InstanceID()
}

// otherAttempt names another attempt of the instance for which the stamp must wait. The Node of such an attempt
// carries the instance id, or its virtual node is marked, so that its Node will carry the id. It returns "" when no
// such attempt exists. If another attempt is both marked and stamped, its Node is the instance's node, and
// otherAttempt returns ErrConflict. Two Nodes with one providerID would make CA count one instance twice.
func (j *join) otherAttempt(ctx context.Context) (waits string, err error) {
	siblings := j.ours(j.self.id)
	siblings[backend.LabelInstance] = j.Instance
	var virtuals offloadingv1beta1.VirtualNodeList
	if err := j.local.List(ctx, &virtuals, siblings); err != nil {
		return "", fmt.Errorf("list virtual nodes of instance %s: %w", j.Instance, err)
	}
	var all corev1.NodeList // listed after the marks: an attempt that has lost its mark since keeps the id on its Node
	if err := j.local.List(ctx, &all, nodesOf(backend.Scope{Group: j.Group})); err != nil {
		return "", fmt.Errorf("list nodes of group %s: %w", j.Group, err)
	}
	alive := map[string]bool{} // the marked attempts, by name
	for i := range virtuals.Items {
		if virtual := &virtuals.Items[i]; virtual.Name != j.name() && j.marks(virtual) {
			waits = fmt.Sprintf("VirtualNode %s of another attempt is still marked", virtual.Name)
			alive[virtual.Name] = virtual.DeletionTimestamp == nil
		}
	}
	for i := range all.Items {
		switch node := &all.Items[i]; {
		case node.Name == j.name() || node.Spec.ProviderID != j.InstanceID():
		case alive[node.Name] && node.DeletionTimestamp == nil:
			return "", errorf(backend.ErrConflict, "Node %s of another attempt is the instance %s: it is stamped and not lost",
				node.Name, j.InstanceID())
		default:
			waits = fmt.Sprintf("Node %s of another attempt still carries the instance id", node.Name)
		}
	}
	return waits, nil
}
