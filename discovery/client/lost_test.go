package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
)

// An ingress that cannot reach the server answers on its own, often with 404. This does not count as a refusal by the
// server.
func TestAnswerOfAnIngressIsNoRefusal(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusTooManyRequests, http.StatusMisdirectedRequest} {
		s := newSite(t)
		c, src := s.client(t)
		_, err := c.Put(t.Context(), posted(t, "milan"))
		require.NoError(t, err)
		_, _, err = src.List(t.Context())
		require.NoError(t, err)
		s.set(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "default backend", status) })
		offers, problems, err := src.List(t.Context())
		require.NoError(t, err, "the last list serves")
		require.Len(t, offers, 1)
		require.Len(t, problems, 1)
		_, err = c.Put(t.Context(), posted(t, "milan"))
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.NotContains(t, err.Error(), "default backend")
	}
}
