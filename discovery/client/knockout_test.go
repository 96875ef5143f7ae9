package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// milan is the cluster that every Secret leads to.
type milan struct{}

func (milan) Identify(context.Context, fleet.Credentials) (string, error) { return "milan", nil }

// A writer of one cluster cannot take another writer's away by an offer whose Secret leads there as well.
func TestAWriterCannotKnockOutAnother(t *testing.T) {
	s := newSite(t)
	writers, err := server.ParseWriters(fmt.Appendf(nil,
		"writers: [{name: w, tokenSHA256: %s, providers: [milan]}, {name: rome, tokenSHA256: %s, providers: [rome]}]",
		hash(token), hash("rome")))
	require.NoError(t, err)
	real, err := server.New(server.Options{Store: storetest.New(t), Writers: writers, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s.set(real.ServeHTTP)
	c, src := s.client(t)
	_, err = c.Put(t.Context(), posted(t, "milan"))
	require.NoError(t, err)

	rival, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.options.URL+"/v1/offers/rival",
		body(t, "rival"))
	require.NoError(t, err)
	rival.Header.Set("Authorization", "Bearer rome")
	rival.Header.Set("Content-Type", "application/json")
	answer, err := s.web.Client().Do(rival)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusCreated, answer.StatusCode)

	offers, problems, err := discovery.Resolve(src, milan{}, discovery.Options{}).Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 1, "%v", problems)
	require.Equal(t, "milan", offers[0].Name)
}

func body(t *testing.T, name string) io.Reader {
	t.Helper()
	raw, err := json.Marshal(posted(t, name))
	require.NoError(t, err)
	return bytes.NewReader(raw)
}
