package observer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

func orphan(provider, uid string, at fleet.Attempt) fleet.Orphan {
	at.Provider = fleet.Provider{ID: provider}
	return fleet.Orphan{Attempt: at, UID: uid, Object: uid}
}

// swept returns a hub with two providers: milan is offered and peered, and rome is only offered.
func swept(left map[string][]fleet.Orphan) *hub {
	h := newHub()
	h.groups["a"] = fleet.Snapshot{Group: "a", Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}}}
	h.left, h.peers, h.found = left, []fleet.Provider{{ID: "milan"}}, []fleet.Found{whole(attempt("a-t0-9"))}
	h.offers = []fleet.Offer{{Provider: "milan"}, {Provider: "rome"}}
	return h
}

// sweeps runs rounds until n sweeps are complete, and returns the orphans (leftovers on providers) that remain.
func (h *hub) sweeps(t *testing.T, n int) (left []fleet.Orphan) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := h.observer()
		leads(t, o, func(func() error) {
			<-time.After(time.Duration(n)*comparison.SweepEvery + 90*time.Second)
			left = o.Conditions.Orphans(time.Now())
		})
	})
	return left
}

// The third sweep removes the orphans that the first sweep has found. It removes a slice directly, and a peering
// through its provider's entity.
func TestThirdSweepRemovesOrphans(t *testing.T) {
	left := map[string][]fleet.Orphan{
		"milan": {orphan("milan", "slice", attempt("a-t0-1")), orphan("milan", "later", fleet.Attempt{})},
		"rome":  {orphan("rome", "tenant", fleet.Attempt{})},
	}
	h := swept(left)
	h.sweeps(t, 2)
	require.Empty(t, h.removed)
	h = swept(left)
	orphans := h.sweeps(t, 3)
	require.Equal(t, []string{"slice"}, h.removed)
	require.ElementsMatch(t, []string{"LeftoverRemoved: provider milan: slice had no counterpart here for ten minutes",
		"LeftoverRemoved: provider rome: tenant had no counterpart here for ten minutes"}, h.events)
	require.Len(t, h.holds, 1)
	require.Equal(t, fleet.HoldLeftover, h.holds[0].Kind)
	require.Equal(t, "rome", h.holds[0].Offer.Provider)
	require.Len(t, orphans, 2, "milan's peering waits for the slice, rome's until it is gone")
	require.Equal(t, "later", orphans[0].UID)
	require.Equal(t, "tenant", orphans[1].UID)
}

// A sweep tries a failed removal again. It removes nothing while it cannot read the provider's entity, the group does
// not answer, or it cannot list the offers.
func TestSweepKeepsOrphansOfUnreadEntities(t *testing.T) {
	for name, c := range map[string]struct {
		fails   map[string]error
		removed int
	}{
		"conflict":           {map[string]error{"remove": errors.New("conflict")}, 1},
		"an unread group":    {map[string]error{"group/a": fleet.ErrUnavailable}, 0},
		"an unread provider": {map[string]error{"provider/milan": fleet.ErrUnavailable}, 0},
		"no offers":          {map[string]error{"offers": errors.New("no answer")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := swept(map[string][]fleet.Orphan{"milan": {orphan("milan", "slice", attempt("a-t0-1"))}})
			h.fails = c.fails
			if c.fails["offers"] != nil {
				h.offers = nil
			}
			h.sweeps(t, 3)
			require.Len(t, h.removed, c.removed)
			require.Empty(t, h.events)
		})
	}
}
