package liqo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// After a Return, a kubelet has registered its Node again, or crd-replicator has not removed the slice from the
// provider. The next Return removes the Node, and RemovePeering removes the slice and its certificate.
func TestLabLeft(t *testing.T) {
	l := theLab(t)
	b, p := l.backend(t), l.provider(1)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	a := attempt(400, p)
	_, err := b.Join(within(t, time.Minute), nodeSpec(a), nil)
	require.NoError(t, err)
	node, err := l.node(t.Context(), a.ObjectName())
	require.NoError(t, err)
	slices := l.clusters[p.ID].any.Resource(authentication("resourceslices")).Namespace("liqo-tenant-" + consumer)
	slice, err := slices.Get(t.Context(), a.ObjectName(), metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, b.Return(within(t, time.Minute), a, nil))

	_, err = l.clusters[consumer].kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, Labels: node.Labels, Annotations: node.Annotations}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, b.Return(within(t, time.Minute), a, nil))
	_, err = l.node(t.Context(), a.ObjectName())
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	left := &unstructured.Unstructured{Object: map[string]any{"apiVersion": slice.GetAPIVersion(),
		"kind": slice.GetKind(), "spec": slice.Object["spec"]}}
	left.SetName(slice.GetName())
	left.SetLabels(slice.GetLabels())
	left.SetAnnotations(slice.GetAnnotations())
	_, err = slices.Create(t.Context(), left, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, poll(within(t, time.Minute), func(ctx context.Context) (bool, error) {
		_, err := l.clusters[p.ID].kube.CoreV1().Secrets("liqo-tenant-"+consumer).Get(ctx,
			"liqo-remote-certificate-"+a.ObjectName(), metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	}), "Liqo signs a certificate for it")
	require.NoError(t, b.RemovePeering(within(t, time.Minute), p, nil))
	l.requireNothing(t)
}

// A NamespaceMap is left after the last virtual node was removed. The provider has removed our Tenant, so
// crd-replicator cannot remove the map's finalizer. RemovePeering still completes.
func TestLabLeftMap(t *testing.T) {
	l := theLab(t)
	b, p := l.backend(t), l.provider(2)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	maps := l.clusters[consumer].any.Resource(offloading("namespacemaps")).Namespace("liqo-tenant-" + p.ID)
	_, err := maps.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "offloading.liqo.io/v1beta1",
		"kind":       "NamespaceMap",
		"metadata": map[string]any{"name": p.ID, "labels": map[string]any{"liqo.io/replication": "true",
			"liqo.io/remoteID": p.ID, "liqo.io/remote-cluster-id": p.ID}},
		"spec": map[string]any{},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		left, err := maps.Get(t.Context(), p.ID, metav1.GetOptions{})
		return err == nil && len(left.GetFinalizers()) > 0
	}, time.Minute, 100*time.Millisecond, "crd-replicator does not hold it")
	require.NoError(t, l.revoke(t.Context(), p))
	require.ErrorIs(t, b.RemovePeering(within(t, time.Minute), p, nil), backend.ErrDenied)
	l.requireForgiven(t, b, p)
}
