package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Contract tests the documented behaviour of a store.Store. The function `open` creates an empty database for each
// subtest, and opens it twice. The two stores receive the calls alternately.
func Contract(t *testing.T, open func(*testing.T) (first, second store.Store)) {
	for name, promise := range map[string]func(*testing.T, store.Store){
		"keeps every field":    keepsEveryField,
		"replaces":             replaces,
		"owners":               owners,
		"delete is idempotent": deleteIsIdempotent,
		"expiry":               expiry,
		"pages":                pages,
		"quota":                quota,
		"quotaOfBytes":         quotaOfBytes,
		"concurrent":           concurrent,
		"sessions":             sessions,
		"sessions are bounded": sessionsAreBounded,
		"order of bytes":       orderOfBytes,
		"selector":             selector,
		"one turn":             oneTurn,
	} {
		t.Run(name, func(t *testing.T) {
			first, second := open(t)
			promise(t, &inTurn{servers: []store.Store{first, second}})
		})
	}
}

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
	before, err := s.Put(t.Context(), r, store.Turn{}, at)
	require.NoError(t, err)
	return before.Writer == ""
}

func keepsEveryField(t *testing.T, s store.Store) {
	want := fullRecord("a", "w")
	require.True(t, put(t, s, want))
	got, err := s.Get(t.Context(), "a", at)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
	list, err := s.List(t.Context(), store.Query{Limit: 10}, at)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]store.Record{want}, list))
	_, err = s.Get(t.Context(), "b", at)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func replaces(t *testing.T, s store.Store) {
	require.True(t, put(t, s, fullRecord("a", "w")))
	next := fullRecord("a", "w")
	next.Offer.Price, next.Updated = 2, at.Add(time.Minute)
	before, err := s.Put(t.Context(), next, store.Turn{}, at)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(fullRecord("a", "w"), before))
	got, err := s.Get(t.Context(), "a", at)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(next, got))
}

func owners(t *testing.T, s store.Store) {
	put(t, s, fullRecord("a", "w"))
	_, err := s.Put(t.Context(), fullRecord("a", "thief"), store.Turn{}, at)
	require.ErrorIs(t, err, store.ErrOwned)
	require.ErrorIs(t, s.Delete(t.Context(), "a", "thief", store.Turn{}, at), store.ErrOwned)
	got, err := s.Get(t.Context(), "a", at)
	require.NoError(t, err)
	require.Equal(t, "w", got.Writer)
}

func deleteIsIdempotent(t *testing.T, s store.Store) {
	put(t, s, fullRecord("a", "w"))
	for range 2 {
		require.NoError(t, s.Delete(t.Context(), "a", "w", store.Turn{}, at))
		_, err := s.Get(t.Context(), "a", at)
		require.ErrorIs(t, err, store.ErrNotFound)
	}
}

func expiry(t *testing.T, s store.Store) {
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
	list, err := s.List(t.Context(), store.Query{Limit: 10}, end)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, s.Delete(t.Context(), "a", "somebody", store.Turn{}, end), "an expired offer belongs to nobody")

	put(t, s, fullRecord("a", "w"))
	next := fullRecord("a", "other")
	next.Offer.Expires = &later
	before, err := s.Put(t.Context(), next, store.Turn{}, end)
	require.NoError(t, err)
	require.Zero(t, before, "an expired name is free")

	n, err := s.Sweep(t.Context(), end)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = s.Sweep(t.Context(), later)
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func pages(t *testing.T, s store.Store) {
	for _, name := range []string{"c", "a", "e", "b", "d"} {
		put(t, s, fullRecord(name, "w"))
	}
	var got []string
	after := ""
	for range 10 {
		list, err := s.List(t.Context(), store.Query{After: after, Limit: 2}, at)
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

func quota(t *testing.T, s store.Store) {
	for i := range store.MaxPerWriter - 5 {
		put(t, s, fullRecord(fmt.Sprintf("a%04d", i), "w"))
	}
	require.Equal(t, [2]int{5, 15}, together(20, func(i int) error {
		_, err := s.Put(t.Context(), fullRecord(fmt.Sprintf("b%02d", i), "w"), store.Turn{}, at)
		return err
	}, store.ErrFull))
	require.False(t, put(t, s, fullRecord("a0000", "w")), "replacing needs no room")
	require.True(t, put(t, s, fullRecord("more", "other")))
	require.NoError(t, s.Delete(t.Context(), "a0001", "w", store.Turn{}, at))
	require.True(t, put(t, s, fullRecord("room", "w")))
}

// quotaOfBytes checks that the total size of a writer's offers is bounded, even if there are fewer than MaxPerWriter
// offers.
func quotaOfBytes(t *testing.T, s store.Store) {
	large := func(name, writer string) store.Record {
		r := fullRecord(name, writer)
		r.Offer.Labels = map[string]string{}
		for n := range 60 {
			r.Offer.Labels[fmt.Sprintf("%060d", n)] = strings.Repeat("a", 60)
		}
		return r
	}
	n := 0
	for ; n < store.MaxPerWriter; n++ {
		_, err := s.Put(t.Context(), large(fmt.Sprintf("a%04d", n), "w"), store.Turn{}, at)
		if err != nil {
			require.ErrorIs(t, err, store.ErrFull)
			break
		}
	}
	require.InDelta(t, store.MaxPerWriterBytes/8000, n, 20)
	require.False(t, put(t, s, large("a0000", "w")), "replacing needs no room")
	require.True(t, put(t, s, large("b", "other")))
	require.NoError(t, s.Delete(t.Context(), "a0001", "w", store.Turn{}, at))
	require.True(t, put(t, s, large("room", "w")))
}

// concurrent checks what happens when several writers write an offer with the same name concurrently: one write
// succeeds, and the other writers receive ErrOwned.
func concurrent(t *testing.T, s store.Store) {
	require.Equal(t, [2]int{1, 19}, together(20, func(i int) error {
		_, err := s.Put(t.Context(), fullRecord("a", fmt.Sprintf("w%02d", i)), store.Turn{}, at)
		return err
	}, store.ErrOwned))
}

func sessions(t *testing.T, s store.Store) {
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

func sessionsAreBounded(t *testing.T, s store.Store) {
	for i := range store.MaxPerWriter {
		_, err := s.Begin(t.Context(), "w", fmt.Sprintf("p%04d", i))
		require.NoError(t, err)
	}
	_, err := s.Begin(t.Context(), "w", "more")
	require.ErrorIs(t, err, store.ErrFull)
	_, err = s.Begin(t.Context(), "w", "p0000")
	require.NoError(t, err, "a newer one needs no room")
}

// orderOfBytes checks that a list is in the byte order of the names, in any locale of the database.
func orderOfBytes(t *testing.T, s store.Store) {
	want := []string{"a-b", "a-c", "a.b", "a0", "aa", "ab"}
	for _, name := range []string{"ab", "a.b", "aa", "a-c", "a0", "a-b"} {
		put(t, s, fullRecord(name, "w"))
	}
	for i := range want {
		list, err := s.List(t.Context(), store.Query{After: want[i], Limit: 10}, at)
		require.NoError(t, err)
		var got []string
		for _, r := range list {
			got = append(got, r.Offer.Name)
		}
		require.Equal(t, want[i+1:], append([]string{}, got...), "after %s", want[i])
	}
}

// selector checks that a list with a selector contains all offers that the selector matches.
func selector(t *testing.T, s store.Store) {
	all := map[string]map[string]string{"a": {"country": "it", "example.com/tier_1": "edge"}, "b": {"country": "fr"},
		"c": {"country": "fr", "empty": ""}, "d": nil, "e": {"a": "country=it"}}
	for name, set := range all {
		r := fullRecord(name, "w")
		r.Offer.Labels = set
		put(t, s, r)
	}
	for text, want := range map[string]string{"": "a b c d e", "country=it": "a", "country in (fr,it)": "a b c",
		"example.com/tier_1==edge": "a", "country=fr,empty=": "c", "country!=it": "b c d e", "!country": "d e",
		"country,country notin (fr)": "a"} {
		parsed, err := labels.Parse(text)
		require.NoError(t, err)
		list, err := s.List(t.Context(), store.Query{Limit: 10, Selector: parsed}, at)
		require.NoError(t, err)
		var got []string
		for _, r := range list {
			if parsed.Matches(labels.Set(r.Offer.Labels)) {
				got = append(got, r.Offer.Name)
			}
		}
		require.Equal(t, want, strings.Join(got, " "), text)
	}
}

// oneTurn checks what happens when several writes with the same turn are sent concurrently to both stores: exactly
// one takes effect.
func oneTurn(t *testing.T, s store.Store) {
	session, err := s.Begin(t.Context(), "w", "milan")
	require.NoError(t, err)
	won := together(20, func(i int) error {
		_, err := s.Put(t.Context(), fullRecord(fmt.Sprintf("a%02d", i), "w"), store.Turn{Session: session, Sequence: 1}, at)
		return err
	}, store.ErrReplayed)
	require.Equal(t, [2]int{1, 19}, won)
	list, err := s.List(t.Context(), store.Query{Limit: 100}, at)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// together runs n calls concurrently. It returns how many calls succeed, and how many calls return the expected
// error.
func together(n int, do func(int) error, expected error) [2]int {
	var all sync.WaitGroup
	var won, lost atomic.Int32
	for i := range n {
		all.Go(func() {
			if err := do(i); err == nil {
				won.Add(1)
			} else if errors.Is(err, expected) {
				lost.Add(1)
			}
		})
	}
	all.Wait()
	return [2]int{int(won.Load()), int(lost.Load())}
}
