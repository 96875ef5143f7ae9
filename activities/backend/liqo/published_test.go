package liqo

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func TestPublished(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	read := func(name, key string) (string, error) {
		return c.Published(t.Context(), provider().Credentials, name, key)
	}
	_, err := read("offer", "edge")
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.ErrorContains(t, err, "is its agent running")

	require.NoError(t, c.there.Create(t.Context(), tenantNS(me)))
	require.NoError(t, c.there.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: named(remoteNS, "offer"), Data: map[string]string{"edge": "what there is"}}))
	document, err := read("offer", "edge")
	require.NoError(t, err)
	require.Equal(t, "what there is", document)
	_, err = read("offer", "other")
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.ErrorContains(t, err, `has no key "other"`)
}

func TestUnreadableDocumentOfAnAgentIsReported(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "offer", errors.New("no"))
	for name, test := range map[string]struct {
		answer, want error
		says         string
	}{
		"forbidden":   {forbidden, backend.ErrInvalid, "provider-access"},
		"unreachable": {errors.New("connection refused"), backend.ErrUnreachable, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClusters(t, nil, []client.Object{tenantNS(me)})
			get := func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object,
				opts ...client.GetOption) error {
				if _, ok := o.(*corev1.ConfigMap); ok {
					return test.answer
				}
				return w.Get(ctx, key, o, opts...)
			}
			c.there = interceptor.NewClient(c.there.(client.WithWatch), interceptor.Funcs{Get: get})
			_, err := c.Published(t.Context(), provider().Credentials, "offer", "edge")
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.says)
		})
	}
}
