package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
)

func (r *rig) begin(token, provider string) int64 {
	r.t.Helper()
	got := r.do("POST", "/v1/sessions", token, fmt.Sprintf(`{"provider":%q}`, provider))
	require.Equal(r.t, 201, got.status, "%s", got.body)
	var begun api.Session
	require.NoError(r.t, json.Unmarshal(got.body, &begun))
	return begun.Session
}

func (r *rig) advance(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(by)
}

func turn(session, sequence int64) string {
	return fmt.Sprintf("?session=%d&sequence=%d", session, sequence)
}

// A newer session ends the older one. Late writes of the older session, and duplicates of a write, change nothing.
func TestNewerSessionEndsTheOlder(t *testing.T) {
	r := newRig(t, storetest.New(t))
	cheaper := strings.Replace(goodOffer, `"price":0.1`, `"price":0.05`, 1)
	price := func() float64 {
		var o api.Offer
		require.NoError(t, json.Unmarshal(r.do("GET", "/v1/offers/milan", tokenR, "").body, &o))
		return o.Price
	}
	first := r.begin(tokenA, "milan-1")
	require.Equal(t, 201, r.do("PUT", "/v1/offers/milan"+turn(first, 1), tokenA, goodOffer).status)
	replayed := r.do("PUT", "/v1/offers/milan"+turn(first, 1), tokenA, cheaper)
	require.Equal(t, 409, replayed.status)
	require.Equal(t, api.TypeReplay, replayed.problem(t).Type)
	require.InDelta(t, 0.1, price(), 0)
	require.Equal(t, 200, r.do("PUT", "/v1/offers/milan"+turn(first, 5), tokenA, cheaper).status)

	other := r.begin(tokenA, "turin-1")
	require.Equal(t, 200, r.do("PUT", "/v1/offers/milan"+turn(first, 6), tokenA, cheaper).status, "another provider's")
	second := r.begin(tokenA, "milan-1")
	require.Greater(t, second, other)
	for _, write := range []result{
		r.do("PUT", "/v1/offers/milan"+turn(first, 7), tokenA, goodOffer),
		r.do("DELETE", "/v1/offers/milan"+turn(first, 8), tokenA, ""),
		r.do("PUT", "/v1/offers/milan"+turn(second+100, 1), tokenA, goodOffer),
		r.do("DELETE", "/v1/offers/milan"+turn(second, 1), tokenB, ""),
	} {
		require.Equal(t, 409, write.status)
		require.Equal(t, api.TypeSession, write.problem(t).Type)
	}
	require.InDelta(t, 0.05, price(), 0)
	require.Equal(t, 204, r.do("DELETE", "/v1/offers/milan"+turn(second, 1), tokenA, "").status)
}

func TestInvalidSessionsAreRefused(t *testing.T) {
	r := newRig(t, storetest.New(t))
	require.Equal(t, 403, r.do("POST", "/v1/sessions", tokenR, `{"provider":"milan-1"}`).status)
	require.Equal(t, 401, r.do("POST", "/v1/sessions", "nobody", `{"provider":"milan-1"}`).status)
	require.Equal(t, 422, r.do("POST", "/v1/sessions", tokenA, `{"provider":"../x"}`).status)
	require.Equal(t, 400, r.do("POST", "/v1/sessions", tokenA, `{"provider":7}`).status)
	for _, query := range []string{"?session=1", "?sequence=1", "?session=0&sequence=1", "?session=1&sequence=-1",
		"?session=x&sequence=1", "?session=1&session=2&sequence=1", "?session=1&sequence=99999999999999999999"} {
		require.Equal(t, 400, r.do("PUT", "/v1/offers/milan"+query, tokenA, goodOffer).status, query)
		require.Equal(t, 400, r.do("DELETE", "/v1/offers/milan"+query, tokenA, "").status, query)
	}
	require.Equal(t, 404, r.do("GET", "/v1/offers/milan", tokenR, "").status)
}

// The server's clock determines when an offer expires. The answers contain the remaining time.
func TestOffersExpireByTheServersClock(t *testing.T) {
	r := newRig(t, storetest.New(t))
	with := func(field string) string { return strings.Replace(goodOffer, `"name"`, field+`,"name"`, 1) }
	remaining := func() float64 {
		var list api.List
		require.NoError(t, json.Unmarshal(r.do("GET", "/v1/offers", tokenR, "").body, &list))
		if len(list.Items) == 0 {
			return 0
		}
		return list.Items[0].RemainingSeconds
	}
	require.Equal(t, 201, r.do("PUT", "/v1/offers/milan", tokenA, with(`"ttlSeconds":60`)).status)
	require.InDelta(t, 60, remaining(), 0)
	r.advance(59 * time.Second)
	require.InDelta(t, 1, remaining(), 0)
	r.advance(time.Second)
	require.Zero(t, remaining())
	for _, wrong := range []string{`"ttlSeconds":-1`, `"ttlSeconds":60,"expires":"2026-11-21T00:00:00Z"`,
		`"ttlSeconds":9000000000000000000`, `"ttlSeconds":2592001`, `"ttlSeconds":1.5`} {
		require.Equal(t, 422, r.do("PUT", "/v1/offers/milan", tokenA, with(wrong)).status, wrong)
	}
}
