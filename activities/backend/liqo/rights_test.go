package liqo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

var someRights = &TenantRights{Role: "worker-tenant", Namespace: "liqo-autoscaler", Account: "worker"}

// boundedByRights makes the consumer check the worker's permissions. The worker may access Secrets and ConfigMaps
// only in tenant namespaces in which it has a RoleBinding.
func (c *clusters) boundedByRights() {
	c.config.TenantRights = someRights
	all := c.local
	may := func(ctx context.Context, o any, namespace string) error {
		switch o.(type) {
		case *corev1.Secret, *corev1.SecretList, *corev1.ConfigMap:
		default:
			return nil
		}
		if namespace == "liqo" {
			return nil
		}
		bound := someRights.binding(namespace, nil)
		if err := all.Get(ctx, client.ObjectKeyFromObject(bound), bound); err != nil {
			return apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("no rights in "+namespace))
		}
		return nil
	}
	c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if err := may(ctx, o, key.Namespace); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var in client.ListOptions
			in.ApplyOptions(opts)
			if err := may(ctx, list, in.Namespace); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := may(ctx, o, o.GetNamespace()); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
}

// RemovePeering grants the worker the permissions that the removal needs. If the namespace stays, RemovePeering
// removes the permissions at the end.
func TestRemovalGrantsItsOwnPermissions(t *testing.T) {
	t.Parallel()
	here, there := ourPeering()
	c := newClusters(t, here, there)
	c.boundedByRights()
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	require.False(t, exists(t, c.local, here[0]))
	require.False(t, exists(t, c.local, here[1]))

	here[0] = tenantNS(peer)
	c = newClusters(t, here, there)
	c.boundedByRights()
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	var left rbacv1.RoleBindingList
	require.NoError(t, c.local.List(t.Context(), &left))
	require.Empty(t, left.Items)
	require.False(t, exists(t, c.there, there[1]))
}

// Establish creates the worker's RoleBinding, with our labels, before it waits for a nonce.
func TestEstablishCreatesTheBindingFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		secret, _ := keys(t)
		c := newClusters(t, []client.Object{secret, tenantNS(peer)}, nil)
		c.boundedByRights()
		err := c.Establish(soon(t), provider(), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageNonce, stage.Stage, "%v", err)
		bound := someRights.binding(localNS, nil)
		require.NoError(t, c.local.Get(t.Context(), client.ObjectKeyFromObject(bound), bound))
		require.Subset(t, bound.Labels, mine())
		require.Equal(t, "worker-tenant", bound.RoleRef.Name)
		require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "liqo-autoscaler", Name: "worker"}},
			bound.Subjects)
	})
}

// Peers skips a tenant namespace in which the worker has no permissions. If another actor has removed the permissions
// in a namespace of ours, Peers does not skip the namespace. It fails, and grants the permissions for the next call.
func TestNamespacesWithoutPermissionsAreSkipped(t *testing.T) {
	t.Parallel()
	c := newClusters(t, []client.Object{tenantNS("others"), tenantNS("begun"),
		nonceOn("liqo-tenant-begun", signedNonceName, consts.SignedNonceSecretLabelKey, "begun", mine()),
		someRights.binding("liqo-tenant-begun", mine())}, nil)
	c.boundedByRights()
	found, err := c.Peers(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "begun", found[0].ID)

	require.NoError(t, c.local.Create(t.Context(), tenantNS(peer, mine())))
	_, err = c.Peers(t.Context(), "")
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	found, err = c.Peers(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, found, 2)
}
