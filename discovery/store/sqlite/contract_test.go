package sqlite_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func fullRecord(name, writer string) store.Record {
	expires, linger := at.Add(time.Hour), int64(0)
	return store.Record{
		Offer: api.Posted{
			Spec: discovery.Spec{
				Name:        name,
				Credentials: discovery.CredentialsSpec{SecretRef: &discovery.SecretRefSpec{Namespace: "ns", Name: name}},
				Lendable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"),
					"nvidia.com/gpu": resource.MustParse("1")},
				Labels:        map[string]string{"country": "it"},
				Price:         0.25,
				Prices:        map[corev1.ResourceName]float64{"nvidia.com/gpu": 1.2},
				Currency:      "EUR",
				LingerSeconds: &linger,
				Expires:       &expires,
				Provider:      "milan",
			},
		},
		Writer: writer, Updated: at,
	}
}

func put(t *testing.T, s store.Store, r store.Record) bool {
	t.Helper()
	created, err := s.Put(t.Context(), r, store.Turn{}, at)
	require.NoError(t, err)
	return created
}

func TestKeepsEveryField(t *testing.T) {
	s := storetest.New(t)
	want := fullRecord("a", "w")
	require.True(t, put(t, s, want))
	got, err := s.Get(t.Context(), "a", at)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
	list, err := s.List(t.Context(), "", 10, at)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]store.Record{want}, list))
	_, err = s.Get(t.Context(), "b", at)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestReplaces(t *testing.T) {
	s := storetest.New(t)
	require.True(t, put(t, s, fullRecord("a", "w")))
	next := fullRecord("a", "w")
	next.Offer.Price, next.Updated = 2, at.Add(time.Minute)
	require.False(t, put(t, s, next))
	got, err := s.Get(t.Context(), "a", at)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(next, got))
}

func TestOwners(t *testing.T) {
	s := storetest.New(t)
	put(t, s, fullRecord("a", "w"))
	_, err := s.Put(t.Context(), fullRecord("a", "thief"), store.Turn{}, at)
	require.ErrorIs(t, err, store.ErrOwned)
	require.ErrorIs(t, s.Delete(t.Context(), "a", "thief", store.Turn{}, at), store.ErrOwned)
	got, err := s.Get(t.Context(), "a", at)
	require.NoError(t, err)
	require.Equal(t, "w", got.Writer)
}

func TestDeleteIsIdempotent(t *testing.T) {
	s := storetest.New(t)
	put(t, s, fullRecord("a", "w"))
	for range 2 {
		require.NoError(t, s.Delete(t.Context(), "a", "w", store.Turn{}, at))
		_, err := s.Get(t.Context(), "a", at)
		require.ErrorIs(t, err, store.ErrNotFound)
	}
}

func TestExpiry(t *testing.T) {
	s := storetest.New(t)
	put(t, s, fullRecord("a", "w"))
	late := fullRecord("b", "w")
	later := at.Add(2 * time.Hour)
	late.Offer.Expires = &later
	put(t, s, late)

	end := at.Add(time.Hour)
	_, err := s.Get(t.Context(), "a", end.Add(-time.Nanosecond))
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "a", end)
	require.ErrorIs(t, err, store.ErrNotFound)
	list, err := s.List(t.Context(), "", 10, end)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, s.Delete(t.Context(), "a", "somebody", store.Turn{}, end), "an expired offer belongs to nobody")

	put(t, s, fullRecord("a", "w"))
	next := fullRecord("a", "other")
	next.Offer.Expires = &later
	created, err := s.Put(t.Context(), next, store.Turn{}, end)
	require.NoError(t, err)
	require.True(t, created, "an expired name is free")

	n, err := s.Sweep(t.Context(), end)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = s.Sweep(t.Context(), later)
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func TestPages(t *testing.T) {
	s := storetest.New(t)
	for _, name := range []string{"c", "a", "e", "b", "d"} {
		put(t, s, fullRecord(name, "w"))
	}
	var got []string
	after := ""
	for range 10 {
		list, err := s.List(t.Context(), after, 2, at)
		require.NoError(t, err)
		require.LessOrEqual(t, len(list), 2)
		if len(list) == 0 {
			break
		}
		for _, r := range list {
			got = append(got, r.Offer.Name)
		}
		after = got[len(got)-1]
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, got)
}

func TestQuota(t *testing.T) {
	s := storetest.New(t)
	for i := range store.MaxPerWriter {
		put(t, s, fullRecord(fmt.Sprintf("a%04d", i), "w"))
	}
	_, err := s.Put(t.Context(), fullRecord("more", "w"), store.Turn{}, at)
	require.ErrorIs(t, err, store.ErrFull)
	require.False(t, put(t, s, fullRecord("a0000", "w")), "replacing needs no room")
	require.True(t, put(t, s, fullRecord("more", "other")))
	require.NoError(t, s.Delete(t.Context(), "a0001", "w", store.Turn{}, at))
	require.True(t, put(t, s, fullRecord("room", "w")))
}

func TestConcurrent(t *testing.T) {
	s := storetest.New(t)
	var all sync.WaitGroup
	var won, lost atomic.Int32
	for i := range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := s.Put(t.Context(), fullRecord("a", fmt.Sprintf("w%02d", i)), store.Turn{}, at)
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, store.ErrOwned):
				lost.Add(1)
			}
		}()
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load(), "one writer owns the name")
	require.EqualValues(t, 19, lost.Load(), "the others are told that it is another's")
}

func TestSessions(t *testing.T) {
	s := storetest.New(t)
	begin := func(writer, provider string) int64 {
		session, err := s.Begin(t.Context(), writer, provider)
		require.NoError(t, err)
		return session
	}
	write := func(writer string, session, sequence int64) error {
		_, err := s.Put(t.Context(), fullRecord("a", writer), store.Turn{Session: session, Sequence: sequence}, at)
		return err
	}
	first, turin := begin("w", "milan"), begin("w", "turin")
	require.NoError(t, write("w", first, 1))
	require.ErrorIs(t, write("w", first, 1), store.ErrReplayed)
	require.NoError(t, write("w", first, 3))
	require.ErrorIs(t, write("w", first, 2), store.ErrReplayed)
	second := begin("w", "milan")
	require.Greater(t, second, turin)
	require.ErrorIs(t, write("w", first, 4), store.ErrSession)
	require.ErrorIs(t, s.Delete(t.Context(), "a", "w", store.Turn{Session: first, Sequence: 5}, at), store.ErrSession)
	require.NoError(t, write("w", turin, 1))
	require.NoError(t, write("w", second, 1))

	thief := begin("thief", "milan")
	require.ErrorIs(t, write("thief", second, 2), store.ErrSession, "another writer's")
	require.ErrorIs(t, write("thief", thief, 1), store.ErrOwned)
	require.NoError(t, s.Delete(t.Context(), "other", "thief", store.Turn{Session: thief, Sequence: 1}, at),
		"a write that failed has used no turn")
	require.NoError(t, s.Delete(t.Context(), "a", "w", store.Turn{Session: second, Sequence: 2}, at))
}

func TestSessionsAreBounded(t *testing.T) {
	s := storetest.New(t)
	for i := range store.MaxPerWriter {
		_, err := s.Begin(t.Context(), "w", fmt.Sprintf("p%04d", i))
		require.NoError(t, err)
	}
	_, err := s.Begin(t.Context(), "w", "more")
	require.ErrorIs(t, err, store.ErrFull)
	_, err = s.Begin(t.Context(), "w", "p0000")
	require.NoError(t, err, "a newer one needs no room")
}
