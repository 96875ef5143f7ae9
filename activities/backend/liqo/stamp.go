package liqo

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// stamped marks the virtual node and then writes the instance id into the Node, last of all: from then on CA counts it.
func (j *join) stamped(ctx context.Context) (bool, string, error) {
	earlier, err := j.earlierNode(ctx)
	if err != nil {
		return false, "", err
	}
	if earlier != "" {
		return false, fmt.Sprintf("Node %s of an earlier attempt is still there", earlier), nil
	}
	virtual, err := j.virtualNode(ctx)
	if err != nil {
		return false, "", err
	}
	if virtual.DeletionTimestamp != nil {
		return false, "", say(backend.ErrConflict, "VirtualNode %s was removed by somebody", virtual.Name)
	}
	if virtual.Annotations[backend.AnnotationStamp] != j.InstanceID() {
		if err := mergePatch(ctx, j.local, virtual, map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{backend.AnnotationStamp: j.InstanceID()}}}); err != nil {
			return false, "", fmt.Errorf("mark virtual node: %w", err)
		}
	}
	node, err := j.attempt.node(ctx, virtual)
	if err != nil {
		return false, "", err
	}
	j.node = node
	switch node.Spec.ProviderID {
	case j.InstanceID():
		return true, "", nil
	case "":
		err := j.stamp(ctx, node)
		return err == nil, "", err
	default:
		return false, "", taken(node)
	}
}

// earlierNode is the name of a Node that an earlier attempt of the same instance has left, or "". Two Nodes with one
// providerID would make CA count one instance twice.
func (j *join) earlierNode(ctx context.Context) (string, error) {
	for number := range j.Number {
		var node corev1.Node
		name := fleet.ObjectName(j.Instance, number)
		err := j.local.Get(ctx, client.ObjectKey{Name: name}, &node)
		if err == nil {
			return name, nil
		}
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("look for Node %s: %w", name, err)
		}
	}
	return "", nil
}

// mergePatch sends a merge patch written by hand, which touches nothing but what it names.
func mergePatch(ctx context.Context, cluster client.Client, object client.Object, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return cluster.Patch(ctx, object, client.RawPatch(types.MergePatchType, data))
}
