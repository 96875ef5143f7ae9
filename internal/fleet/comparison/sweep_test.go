package comparison_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

func leftSlice(instance string) fleet.Orphan {
	return fleet.Orphan{UID: "uid-" + instance, Object: "slice " + instance, Attempt: fleet.Attempt{Group: "a",
		Instance: instance, Number: 2, Provider: fleet.Provider{ID: "milan"}}}
}

func leftPeering() fleet.Orphan {
	return fleet.Orphan{UID: "uid-tenant", Object: "Tenant", Attempt: fleet.Attempt{Provider: fleet.Provider{ID: "milan"}}}
}

var milan = []fleet.Provider{{ID: "milan"}}

// swept returns a hub with an offer of milan and the group a, which runs without instances.
func swept(at time.Time, change ...func(*comparison.Swept)) comparison.Swept {
	of := comparison.Swept{At: at, Groups: []fleet.Snapshot{{Group: "a",
		Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}}}},
		Offers: []fleet.Offer{{Provider: "milan"}}, Found: []fleet.Found{{}}}
	for _, c := range change {
		c(&of)
	}
	return of
}

// An orphan is removed after consecutive sweeps have seen it for ten minutes. A peering is removed only after the
// slices.
func TestOrphanIsRemovedAfterTenMinutes(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	var s comparison.Sweep
	at := func(after time.Duration, got ...fleet.Orphan) (slices int, peering bool) {
		s = s.After(swept(now.Add(after)), milan, "", got)
		attempts, left := s.Removable("milan")
		return len(attempts), left != nil
	}
	for _, c := range []struct {
		after   time.Duration
		got     []fleet.Orphan
		slices  int
		peering bool
	}{
		{0, []fleet.Orphan{leftSlice("a-t0-1"), leftPeering()}, 0, false},
		{5 * time.Minute, []fleet.Orphan{leftSlice("a-t0-1"), leftPeering()}, 0, false},
		{10 * time.Minute, []fleet.Orphan{leftSlice("a-t0-1"), leftPeering()}, 1, false},
		{15 * time.Minute, []fleet.Orphan{leftPeering()}, 0, true},
		{20 * time.Minute, nil, 0, false}, // the provider did not answer
		{25 * time.Minute, []fleet.Orphan{leftPeering()}, 0, false},
	} {
		slices, peering := at(c.after, c.got...)
		require.Equal(t, c.slices, slices, "%s", c.after)
		require.Equal(t, c.peering, peering, "%s", c.after)
	}
	s.Forget(leftPeering())
	require.Empty(t, s.Orphans)
}

// A sweep never removes an object that may still be in use, however old it is.
func TestSweepKeepsObjectsInUse(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	row := func(number int) func(*comparison.Swept) {
		return func(of *comparison.Swept) {
			of.Groups[0].Instances = []fleet.InstanceView{{Name: "a-t0-1", Phase: fleet.Ready, Attempt: number}}
		}
	}
	provider := func(p fleet.ProviderSnapshot) func(*comparison.Swept) {
		return func(of *comparison.Swept) { p.ID, of.Providers = "milan", []fleet.ProviderSnapshot{p} }
	}
	foreign := leftSlice("a-t0-1")
	foreign.Foreign = true
	for name, c := range map[string]struct {
		orphan fleet.Orphan
		change func(*comparison.Swept)
		kept   string
	}{
		"unknown instance": {leftSlice("a-t0-1"), row(3), ""},
		"of another cluster": {foreign, row(3),
			"another cluster with the same Liqo id created the object, or the object does not name its creator"},
		"the instance's own": {leftSlice("a-t0-1"), row(2), "its instance still exists in its node group"},
		"an attempt to come": {leftSlice("a-t0-1"), row(1), "its instance still exists in its node group"},
		"the group is unknown": {leftSlice("a-t0-1"), func(of *comparison.Swept) { of.Groups = nil },
			"node group a does not run, or has no configuration yet"},
		"the group recovers": {leftSlice("a-t0-1"), func(of *comparison.Swept) { of.Groups[0].Spec = nil },
			"node group a does not run, or has no configuration yet"},
		"held": {leftSlice("a-t0-1"), provider(fleet.ProviderSnapshot{Phase: fleet.Established,
			Holds: []string{"lca-a-t0-1-2"}}), "its provider's workflow has a hold for it"},
		"held by another": {leftSlice("a-t0-1"), func(of *comparison.Swept) {
			of.Providers = []fleet.ProviderSnapshot{{ID: "milan", Holds: []string{"lca-a-t0-2-2"}},
				{ID: "turin", Holds: []string{"lca-a-t0-1-2"}}}
		}, ""},
		"another instance": {leftSlice("a-t0-1"), func(of *comparison.Swept) {
			of.Groups[0].Instances = []fleet.InstanceView{{Name: "a-t0-2", Phase: fleet.Ready, Attempt: 1}}
		}, ""},
		"lists show nothing": {leftSlice("a-t0-1"), func(of *comparison.Swept) { of.Found = nil }, ""},
		"a peering that is over": {leftPeering(), provider(fleet.ProviderSnapshot{Phase: fleet.Absent}),
			""},
		"a peering in use": {leftPeering(), provider(fleet.ProviderSnapshot{Phase: fleet.Establishing}),
			"the peering is in use"},
		"a peering that is held": {leftPeering(), provider(fleet.ProviderSnapshot{Phase: fleet.Absent,
			Holds: []string{"lca-a-t0-1-1"}}), "the peering is in use"},
		"a peering of a standby": {leftPeering(), provider(fleet.ProviderSnapshot{Phase: fleet.Absent,
			Standby: map[string]fleet.HoldState{"standby": fleet.HoldGranted}}), "the peering is in use"},
		"a peering of both": {leftPeering(), provider(fleet.ProviderSnapshot{Phase: fleet.Absent,
			Holds:   []string{"lca-a-t0-1-1"},
			Standby: map[string]fleet.HoldState{"standby": fleet.HoldGranted}}), "the peering is in use"},
		"a peering for good": {leftPeering(), func(of *comparison.Swept) { of.Offers[0].Unpeer = fleet.UnpeerNever },
			"the offer sets unpeer: never"},
		"not offered": {leftPeering(), func(of *comparison.Swept) { of.Offers = nil }, "the provider has no offer"},
	} {
		t.Run(name, func(t *testing.T) {
			var s comparison.Sweep
			for n := range 4 {
				s = s.After(swept(now.Add(time.Duration(n)*comparison.SweepEvery), c.change), milan, "", []fleet.Orphan{c.orphan})
			}
			require.Len(t, s.Orphans, 1)
			require.Equal(t, c.kept, s.Orphans[0].KeptBecause)
		})
	}
}

// A sweep accepts an entirely empty list only when the lists have been empty for five minutes.
func TestSweepAcceptsEmptyListsAfterFiveMinutes(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	var s comparison.Sweep
	for n := range 3 {
		s = s.After(swept(now.Add(time.Duration(n)*comparison.SweepEvery)), milan, "", []fleet.Orphan{leftSlice("a-t0-1")})
	}
	require.Empty(t, s.Orphans[0].KeptBecause)
	empty := func(of *comparison.Swept) { of.Found = nil }
	s = s.After(swept(now.Add(3*comparison.SweepEvery), empty), milan, "", []fleet.Orphan{leftSlice("a-t0-1")})
	require.Contains(t, s.Orphans[0].KeptBecause, "nothing is removed for five minutes")
	s = s.After(swept(now.Add(4*comparison.SweepEvery), empty), milan, "", []fleet.Orphan{leftSlice("a-t0-1")})
	require.Empty(t, s.Orphans[0].KeptBecause)
}

// Each sweep checks a part of the providers, and the next sweep checks the next part. The orphans of the other
// providers stay listed.
func TestSweepChecksSomeProvidersEachTime(t *testing.T) {
	var offers []fleet.Offer
	for n := range 120 {
		offers = append(offers, fleet.Offer{Provider: fmt.Sprintf("p%03d", n)})
	}
	var s comparison.Sweep
	seen := map[string]int{}
	for n := range 12 {
		asked, next := s.Asks(offers, []fleet.Provider{{ID: "p000"}})
		require.LessOrEqual(t, len(asked), 50)
		for _, p := range asked {
			seen[p.ID]++
		}
		var got []fleet.Orphan
		if n == 0 {
			o := leftPeering()
			o.Attempt.Provider.ID = asked[0].ID
			got = append(got, o)
		}
		s = s.After(swept(time.Unix(int64(n)*300, 0)), asked, next, got)
		if n == 1 {
			require.Len(t, s.Orphans, 1, "p000 was not checked")
		}
	}
	require.Len(t, seen, 120)
	for id, times := range seen {
		require.Equal(t, 5, times, id)
	}
}

// A sweep checks each offered or peered provider once, in the order of the ids, and at most fifty providers.
func TestSweepChecksEachProviderOnce(t *testing.T) {
	for n, want := range map[int]string{49: "", 50: "", 51: "p50"} {
		var offers []fleet.Offer
		for i := range n {
			id := fmt.Sprintf("p%02d", n-1-i)
			offers = append(offers, fleet.Offer{Provider: id, Name: "one"}, fleet.Offer{Provider: id, Name: "other"})
		}
		asked, next := comparison.Sweep{}.Asks(offers, []fleet.Provider{{ID: "p03"}, {ID: "p01"}})
		require.Len(t, asked, min(n, 50))
		for i, p := range asked {
			require.Equal(t, fmt.Sprintf("p%02d", i), p.ID)
		}
		require.Equal(t, want, next)
	}
}

// The sweep records an object only if its UID and its name are at most as long as our longest ones. It ignores
// objects with longer UIDs or names, which a provider may invent. The sweep removes at most twenty slices in one
// pass.
func TestSweepIgnoresInventedNames(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	for _, c := range []struct{ uid, instance, kept int }{{64, 10, 1}, {65, 10, 0}, {10, 57, 1}, {10, 58, 0}} {
		o := leftSlice(strings.Repeat("a", c.instance))
		o.UID = strings.Repeat("x", c.uid)
		require.Len(t, comparison.Sweep{}.After(swept(now), milan, "", []fleet.Orphan{o}).Orphans, c.kept, "%v", c)
	}
	var got []fleet.Orphan
	for n := range 25 {
		got = append(got, leftSlice(fmt.Sprintf("a-t0-%d", n+1)))
	}
	var s comparison.Sweep
	for n := range 3 {
		s = s.After(swept(now.Add(time.Duration(n)*comparison.SweepEvery)), milan, "", got)
	}
	attempts, _ := s.Removable("milan")
	require.Len(t, attempts, 20)
	attempts, _ = s.Removable("turin")
	require.Empty(t, attempts)
}

// When several providers report too much, the sweep records the same amount of data for each provider.
func TestSweepRecordsProvidersEqually(t *testing.T) {
	var got []fleet.Orphan
	asked := []fleet.Provider{{ID: "milan"}, {ID: "rome"}, {ID: "turin"}}
	for _, p := range asked {
		for n := range 50 {
			o := leftSlice(fmt.Sprintf("a-t0-%d", n))
			o.UID, o.Attempt.Provider.ID = fmt.Sprint(p.ID, n), p.ID
			got = append(got, o)
		}
	}
	kept := map[string]int{}
	for _, o := range (comparison.Sweep{}.After(swept(time.Unix(2_000_000, 0)), asked, "", got)).Orphans {
		kept[o.Attempt.Provider.ID]++
	}
	require.Equal(t, map[string]int{"milan": 34, "rome": 33, "turin": 33}, kept)
}

// A provider that reports arbitrary data displaces no data of another provider. The record of the sweep stays small.
func TestInventedOrphansDisplaceNoOthers(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	long := leftSlice("a-t0-1")
	long.Object, long.UID = strings.Repeat("x", 1<<20), "long"
	uid := leftSlice("a-t0-2")
	uid.UID = strings.Repeat("x", 1<<20)
	name := leftSlice(strings.Repeat("a", 1<<20))
	name.UID = "name"
	got := []fleet.Orphan{long, uid, name}
	for n := range 1000 {
		got = append(got, leftSlice(fmt.Sprintf("a-t1-%d", n)))
	}
	honest := leftSlice("a-t0-3")
	honest.Attempt.Provider.ID = "turin"
	asked := []fleet.Provider{{ID: "milan"}, {ID: "turin"}}
	s := comparison.Sweep{}.After(swept(now), asked, "", append(got, honest))
	require.Len(t, s.Orphans, 100)
	require.Equal(t, "turin", s.Orphans[99].Attempt.Provider.ID)
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.Less(t, len(raw), 64<<10)
}
