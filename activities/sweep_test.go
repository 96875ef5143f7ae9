package activities_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

// leaving is a world in which providers have something that we own and that nothing here stands for.
type leaving struct {
	world
	left    map[string][]fleet.Orphan // by provider; one that has no entry does not answer
	fails   error                     // of a removal
	removed []string                  // UIDs
	shown   board
}

func (l *leaving) Leftovers(_ context.Context, p fleet.Provider) ([]fleet.Orphan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, answers := l.left[p.ID]
	if !answers {
		return nil, backend.ErrUnreachable
	}
	return slices.Clone(left), nil
}

func (l *leaving) RemoveLeftover(_ context.Context, o fleet.Orphan) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = append(l.removed, o.UID)
	return l.fails
}

func orphan(provider, uid string, at fleet.Attempt) fleet.Orphan {
	at.Provider = fleet.Provider{ID: provider}
	return fleet.Orphan{Attempt: at, UID: uid, Object: uid}
}

// sweeps are three sweeps, five minutes apart, over milan, which is offered and peered, and rome, which is offered.
func sweeps(t *testing.T, l *leaving, m *messages) (sweep comparison.Sweep, err error) {
	t.Helper()
	l.peers, l.found = []fleet.Provider{{ID: "milan"}}, []fleet.Found{whole(attempt("a-t0-9"))}
	a := &activities.Activities{
		Backend: l, Messages: m, Events: &l.shown,
		Catalog: offering{offers: []fleet.Offer{{Provider: "milan"}, {Provider: "rome"}}},
		Entities: &entities{groups: []fleet.Snapshot{{Group: "a",
			Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}}}}},
	}
	for n := range 3 {
		in := activities.SweepInput{Last: sweep, At: noon.Add(time.Duration(n) * comparison.SweepEvery)}
		if sweep, err = run[comparison.Sweep](t, a.Sweep, in); err != nil {
			return sweep, err
		}
	}
	return sweep, nil
}

// The third sweep removes what the first has seen: slices itself, a peering through its provider's entity.
func TestSweep(t *testing.T) {
	l := &leaving{left: map[string][]fleet.Orphan{
		"milan": {orphan("milan", "slice", attempt("a-t0-1")), orphan("milan", "later", fleet.Attempt{})},
		"rome":  {orphan("rome", "tenant", fleet.Attempt{})},
	}}
	m := &messages{}
	sweep, err := sweeps(t, l, m)
	require.NoError(t, err)
	require.Equal(t, []string{"slice"}, l.removed)
	require.ElementsMatch(t, []string{"LeftoverRemoved : provider milan: slice had no counterpart here for ten minutes",
		"LeftoverRemoved : provider rome: tenant had no counterpart here for ten minutes"}, l.shown.all())
	require.Len(t, m.holds, 1)
	require.Equal(t, fleet.HoldLeftover, m.holds[0].Kind)
	require.Equal(t, "rome", m.holds[0].Offer.Provider)
	require.Len(t, sweep.Orphans, 2, "milan's peering waits for the slice, rome's until it is gone")
	require.Equal(t, "later", sweep.Orphans[0].UID)
	require.Equal(t, "tenant", sweep.Orphans[1].UID)
}

// What cannot be removed is tried again, a provider that is silent has nothing, and lists that fail say nothing.
func TestSweepFails(t *testing.T) {
	l := &leaving{fails: errors.New("conflict"), left: map[string][]fleet.Orphan{
		"milan": {orphan("milan", "slice", attempt("a-t0-1"))}}}
	sweep, err := sweeps(t, l, &messages{})
	require.NoError(t, err)
	require.Equal(t, []string{"slice"}, l.removed)
	require.Len(t, sweep.Orphans, 1)
	require.Empty(t, l.shown.all())

	l.err, l.removed = errors.New("no list"), nil
	_, err = sweeps(t, l, &messages{})
	require.ErrorContains(t, err, "no list")
	require.Empty(t, l.removed)

	a := &activities.Activities{Backend: &world{}}
	sweep, err = run[comparison.Sweep](t, a.Sweep, activities.SweepInput{At: noon})
	require.NoError(t, err, "a backend that leaves nothing")
	require.Equal(t, comparison.Sweep{At: noon}, sweep)
}

// A pass that lacks room on this cluster tells the provider's entity at once, and only once it has not published that.
func TestNoRoomIsTold(t *testing.T) {
	lacks := &backend.StageError{Stage: backend.StageGatewayClient, Message: "NoRoomForGateway: pod gw-milan",
		Err: fmt.Errorf("%w (%w)", context.DeadlineExceeded, backend.ErrNoRoom)}
	m, entities := &messages{}, running()
	a := &activities.Activities{Backend: &world{verb: fails(lacks)}, Messages: m, Entities: entities}
	in := fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"}}
	_, f := activities.VerdictOf(ended(t, a.Establish, in), "milan")
	require.Equal(t, fleet.CodeNoRoom, f.Code)
	require.Equal(t, []fleet.HoldRequest{{Kind: fleet.HoldNoRoom,
		Message: "waiting for gateway-client: NoRoomForGateway: pod gw-milan"}}, m.holds)

	entities.providers[0].Standing.Fault = fleet.ConditionNoRoomForGateway
	require.Error(t, ended(t, a.Establish, in))
	require.Len(t, m.holds, 1, "it is published")
	a.Backend, entities.providers[0].Standing.Fault = &world{verb: fails(backend.ErrUnreachable)}, ""
	require.Error(t, ended(t, a.Establish, in))
	require.Len(t, m.holds, 1, "it is the provider that does not answer")
}

// A sweep that cannot list everything keeps what the one before has found, and asks nobody.
func TestSweepWithoutAList(t *testing.T) {
	broken := errors.New("no answer")
	last := comparison.Sweep{At: noon, Orphans: []fleet.Orphan{orphan("milan", "slice", attempt("a-t0-1"))}}
	for says, a := range map[string]*activities.Activities{
		"read groups":    {Backend: &leaving{}, Catalog: offering{}, Entities: &entities{err: broken}},
		"read providers": {Backend: &leaving{}, Catalog: offering{}, Entities: unpublished{&entities{}, broken}},
		"list offers":    {Backend: &leaving{}, Catalog: offering{err: broken}, Entities: &entities{}},
		"list objects":   {Backend: hidden{&leaving{}}, Catalog: offering{}, Entities: &entities{}},
	} {
		_, err := run[comparison.Sweep](t, a.Sweep, activities.SweepInput{Last: last, At: noon.Add(time.Hour)})
		require.ErrorContains(t, err, says+": no answer")
	}
}

// hidden has peerings, and objects that cannot be listed.
type hidden struct{ *leaving }

func (hidden) List(context.Context, string) ([]fleet.Found, error) {
	return nil, errors.New("no answer")
}
