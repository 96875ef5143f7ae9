package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// milan is the cluster to which every Secret leads.
type milan struct{}

func (milan) Identify(context.Context, fleet.Credentials) (string, error) { return "milan", nil }

// A writer publishes an offer whose Secret leads to the cluster of another writer. The other writer's offer stays.
func TestWriterCannotDisplaceAnothersOffer(t *testing.T) {
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

// The list of one provider costs a worker a bounded amount of memory, and displaces no offer of another provider.
func TestListOfOneProviderIsBounded(t *testing.T) {
	s := newSite(t)
	large := posted(t, "milan")
	large.Provider, large.Labels = "milan", map[string]string{}
	for n := range 60 {
		large.Labels[fmt.Sprintf("%060d", n)] = strings.Repeat("a", 60)
	}
	var items []any
	for n := range 400 { // of some 8 KiB each
		large.Name = fmt.Sprintf("milan-%03d", n)
		items = append(items, large)
	}
	turin := posted(t, "turin")
	turin.Provider = "turin"
	items = append(items, turin)
	s.set(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		require.NoError(t, json.NewEncoder(w).Encode(map[string]any{"items": items}))
	})
	_, src := s.client(t)
	offers, problems, err := src.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, "turin", offers[len(offers)-1].Name)
	require.InDelta(t, 130, len(offers), 10)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].String(), "provider milan has offers of more than 1048576 bytes: "+
		"the others are omitted")
}

// A server answers with many small items, each of which needs much memory when it is decoded. The client refuses the
// answer, or reports at most 100 of the invalid items.
func TestMemoryOfAnAnswerIsBounded(t *testing.T) {
	s := newSite(t)
	_, src := s.client(t)
	var contentType, answer string
	status := http.StatusOK
	s.set(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	many := func(of string, n int) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	for name, tc := range map[string]struct{ answer, says string }{
		"offers":  {`{"items":[` + many("{}", api.MaxLimit+1) + `]}`, "a page has more than 500 offers"},
		"no list": {`{"items":{}}`, "items is not a list: {}"},
		"null":    {`{"items":null}`, "the answer is not a list of offers"},
		"nested":  {`{"items":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "exceeded max depth"},
		"next":    {`{"items":[],"next":"` + strings.Repeat("n", 254) + `"}`, "pagination does not advance"},
	} {
		contentType, answer = api.ContentJSON, tc.answer
		_, _, err := src.List(t.Context())
		require.ErrorIs(t, err, client.ErrUnreachable, name)
		require.ErrorContains(t, err, tc.says, name)
	}
	answer = `{"items":[` + many("{}", api.MaxLimit) + `]}`
	_, problems, err := src.List(t.Context())
	require.NoError(t, err)
	require.Len(t, problems, 101)
	require.Equal(t, "api: 400 more problems", problems[100].String())

	contentType, status = api.ContentProblem, http.StatusUnprocessableEntity
	answer = `{"title":"no","errors":[` + many("{}", 100_000) + `]}`
	_, src = s.client(t) // the client has no earlier list
	_, _, err = src.List(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorContains(t, err, "the answer is 422")
}

func body(t *testing.T, name string) io.Reader {
	t.Helper()
	raw, err := json.Marshal(posted(t, name))
	require.NoError(t, err)
	return bytes.NewReader(raw)
}
