package liqo

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func TestIdentifyReadsTheClusterID(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	id, err := c.Identify(t.Context(), provider().Credentials)
	require.NoError(t, err)
	require.Equal(t, peer, id)

	c = newClusters(t, nil, []client.Object{&corev1.ConfigMap{ObjectMeta: named("elsewhere", "clusterid",
		clusterID("other").Labels)}})
	_, err = c.Identify(t.Context(), provider().Credentials)
	require.NoError(t, err, "the usual namespace comes first")
	require.NoError(t, c.there.Delete(t.Context(), clusterID(peer)))
	_, err = c.Identify(t.Context(), provider().Credentials)
	require.ErrorIs(t, err, backend.ErrInvalid, "a ConfigMap without an id")
	require.ErrorContains(t, err, "elsewhere/clusterid")
}

// The backend maps each kind of answer of a provider to one of the errors to which callers react.
func TestErrorsOfAProviderAreClassified(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New("no"))
	unauthorized := apierrors.NewUnauthorized("token expired")
	for _, test := range []struct{ err, want error }{
		{errors.New("dial tcp: connection refused"), backend.ErrUnreachable},
		{unauthorized, backend.ErrUnreachable},
		{apierrors.NewServiceUnavailable("starting"), backend.ErrUnreachable},
		{forbidden, backend.ErrDenied},
	} {
		require.ErrorIs(t, accessError("do it", test.err), test.want)
	}
	conflict := apierrors.NewConflict(corev1.Resource("secrets"), "x", errors.New("changed"))
	require.True(t, apierrors.IsConflict(accessError("do it", conflict)), "all else is retried")
	require.ErrorIs(t, invalidIfUnauthorized(unauthorized), backend.ErrInvalid)
	require.ErrorIs(t, invalidIfUnauthorized(forbidden), backend.ErrInvalid)
}

// An API server that has just started refuses every request until it has read its roles. Identify does not blame the
// credentials for this.
func TestIdentifyWhileAPIServerStarts(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	c.graces.identify = time.Minute
	var asked atomic.Int32
	refuse := int32(3)
	c.there = interceptor.NewClient(c.there.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if asked.Add(1) <= refuse {
				return apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("RBAC: clusterrole not found"))
			}
			return w.List(ctx, list, opts...)
		},
	})
	id, err := c.Identify(t.Context(), provider().Credentials)
	require.NoError(t, err)
	require.Equal(t, peer, id)

	refuse, c.graces.identify = 1000, 300*time.Millisecond
	_, err = c.Identify(t.Context(), provider().Credentials)
	require.ErrorIs(t, err, backend.ErrInvalid, "a refusal that lasts is final")
	require.ErrorContains(t, err, "may not read its cluster id")
}

// Alive checks whether this cluster's API server answers. It sends one request, even if many peerings exist.
func TestAliveSendsOneRequest(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	require.NoError(t, c.Alive(t.Context()))
	down, asked := errors.New("connection refused"), 0
	c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			asked++
			return down
		},
	})
	require.ErrorIs(t, c.Alive(t.Context()), down)
	require.Equal(t, 1, asked)
}
