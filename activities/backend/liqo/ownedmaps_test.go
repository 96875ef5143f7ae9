package liqo

import (
	"context"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Since Liqo pull request 3265, the Secret of the control plane's Identity owns the NamespaceMap. If the map is
// deleted while this Secret exists, Liqo makes the map again. RemovePeering therefore deletes only the Identity, and
// Kubernetes then removes the map.
func TestRemovePeeringLeavesOwnedNamespaceMapToKubernetes(t *testing.T) {
	t.Parallel()
	here, there := ourPeering()
	owned := func() *offloadingv1beta1.NamespaceMap {
		m := &offloadingv1beta1.NamespaceMap{ObjectMeta: named(localNS, peer, outgoing(peer))}
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "kubeconfig", UID: "1"}}
		return m
	}
	c := newClusters(t, append(here, owned()), there)
	c.graces.namespaceMap = time.Millisecond
	deleted, ended := 0, false
	c.local = interceptor.NewClient(c.watch, interceptor.Funcs{Delete: func(ctx context.Context, cluster client.WithWatch,
		object client.Object, options ...client.DeleteOption) error {
		if err := cluster.Delete(ctx, object, options...); err != nil {
			return err
		}
		switch object.(type) {
		case *offloadingv1beta1.NamespaceMap:
			deleted++
			if !ended {
				return cluster.Create(ctx, owned())
			}
		case *authv1beta1.Identity: // Kubernetes removes the Secret, and the map with the Secret
			ended = true
			if err := cluster.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(localNS)); err != nil {
				return err
			}
			return cluster.DeleteAllOf(ctx, &offloadingv1beta1.NamespaceMap{}, client.InNamespace(localNS))
		}
		return nil
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.RemovePeering(ctx, provider(), nil))
	require.Zero(t, deleted)
	require.True(t, ended)
}
