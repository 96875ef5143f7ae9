package client_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
)

// An offer is valid for a minute. For a reader whose clock is an hour off it is also valid for a minute, even while
// the server is unreachable. A second list returns the offer with an unchanged end time.
func TestReaderWithAWrongClockKeepsOffersForTheirTime(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		s := newSite(t)
		s.advance(off)
		c, src := s.client(t)
		offer := posted(t, "milan")
		offer.TTLSeconds = 60
		_, err := c.Put(t.Context(), offer)
		require.NoError(t, err)
		offers, _, err := src.List(t.Context())
		require.NoError(t, err)
		require.False(t, offers[0].Expired(s.options.Now()))
		again, _, err := src.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, offers[0].Expires, again[0].Expires)

		s.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		s.advance(61 * time.Second)
		offers, _, err = src.List(t.Context())
		require.NoError(t, err)
		require.True(t, offers[0].Expired(s.options.Now()), "counted down without the server")
	}
}

// When a server does not send the remaining time of an offer, the client uses the offer's end time.
func TestEndTimeIsUsedWithoutARemainingTime(t *testing.T) {
	s := newSite(t)
	_, src := s.client(t)
	s.set(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"items":[{"name":"milan","credentials":{"secretRef":{"namespace":"lend","name":"milan"}},
			"lendable":{"cpu":"16","memory":"64Gi","pods":"110"},"expires":"2027-01-01T00:00:00Z"}]}`))
	})
	offers, problems, err := src.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), *offers[0].Expires)
}

func TestEndedSessionIsReported(t *testing.T) {
	s := newSite(t)
	c, _ := s.client(t)
	first, err := c.Begin(t.Context(), "milan-1")
	require.NoError(t, err)
	_, err = first.Put(t.Context(), posted(t, "milan"))
	require.NoError(t, err)
	second, err := c.Begin(t.Context(), "milan-1")
	require.NoError(t, err)
	require.ErrorIs(t, first.Delete(t.Context(), "milan"), client.ErrSession)
	_, err = first.Put(t.Context(), posted(t, "milan"))
	require.ErrorIs(t, err, client.ErrSession)
	require.ErrorIs(t, err, client.ErrRefused)
	for range 2 {
		require.NoError(t, second.Delete(t.Context(), "milan"))
	}
}
