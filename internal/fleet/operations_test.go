package fleet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// The test lists the reasons for which an operation is refused. A refused operation books nothing.
func TestRefusedOperations(t *testing.T) {
	foreign := *spec()
	foreign.ID = "gpu"
	op := fleet.Operation{ID: "a", GiveUpAt: t0.Add(time.Second)}
	ahead := fleet.Position{Epoch: "x", Revision: 1 << 40}
	for name, c := range map[string]struct {
		verb       fleet.Verb
		request    fleet.Request
		recovering bool
		bare       bool // the group has no config
		kind       fleet.RefusalKind
		says       string
	}{
		"no id": {
			verb: fleet.Grow, request: fleet.Request{Delta: 1},
			kind: fleet.RefusedInvalid, says: "without id",
		},
		"no spec": {
			verb: fleet.Configure,
			kind: fleet.RefusedInvalid, says: `this is group standard, not ""`,
		},
		"another's spec": {
			verb: fleet.Configure, request: fleet.Request{Spec: &foreign},
			kind: fleet.RefusedInvalid, says: `not "gpu"`,
		},
		"shrink by zero": {
			verb: fleet.Shrink, request: fleet.Request{Operation: op},
			kind: fleet.RefusedInvalid, says: "must be negative",
		},
		"shrink of none": {
			verb: fleet.Shrink, request: fleet.Request{Operation: op, Delta: 1},
			kind: fleet.RefusedPrecondition, says: "delete nodes by name",
		},
		"not configured": {
			verb: fleet.Grow, request: fleet.Request{Operation: op, Delta: 1}, bare: true,
			kind: fleet.RefusedNotInitialised, says: "no configuration yet",
		},
		"recovering": {
			verb: fleet.Grow, request: fleet.Request{Operation: op, Delta: 1}, recovering: true,
			kind: fleet.RefusedNotInitialised, says: "is being rebuilt",
		},
		"configured then": {
			verb: fleet.Configure, request: fleet.Request{Spec: spec()}, recovering: true,
			kind: fleet.RefusedNotInitialised, says: "is being rebuilt",
		},
		"behind": {
			verb: fleet.Grow, request: fleet.Request{Operation: op, Delta: 1, Seen: ahead}, recovering: true,
			kind: fleet.RefusedNotInitialised, says: "is being rebuilt from the objects that exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger(t)
			if c.bare {
				l.Spec = nil
			}
			l.Recovering = c.recovering
			before := l.String()
			require.Equal(t, l.Validate(c.verb, c.request, t0), l.Operate(c.verb, c.request, t0))
			known, err := l.Check(c.verb, c.request, t0)
			require.False(t, known, "it has not run")
			require.True(t, fleet.IsRefused(err, c.kind), "%v", err)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, l.String())
		})
	}
}

// An operation can show the group that the group's history was reverted. The group accepts such an operation and
// starts a new epoch, but the operation itself books nothing.
func TestOperationFromANewerPositionStartsANewEpoch(t *testing.T) {
	l := ledger(t)
	r := fleet.Request{Operation: fleet.Operation{ID: "a", GiveUpAt: t0.Add(time.Second)}, Delta: 1,
		Seen: fleet.Position{Epoch: "x", Revision: l.Revision + 1}}
	require.NoError(t, l.Validate(fleet.Grow, r, t0))
	err := l.Operate(fleet.Grow, r, t0)
	require.True(t, fleet.IsRefused(err, fleet.RefusedNotInitialised), "%v", err)
	require.True(t, l.Recovering)
	require.True(t, fleet.EpochBefore("x", l.Epoch))
	require.Zero(t, l.Target())
	require.NotNil(t, l.Spec, "it knows what it is for")
}

// A provider that offers a number of nodes gets at most this number of holds, regardless of their size.
func TestOfferIsBoundedByItsNumberOfNodes(t *testing.T) {
	p := provider.New("milan", t0)
	p.Step(provider.Input{Result: &fleet.Result{ID: 2, Outcome: fleet.OutcomeDone}}, t0)
	acquire := func(key string) provider.Hold {
		offer := &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2), MaxNodes: 1}
		p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldAcquire, Key: key, Shape: shape("1"),
			Offer: offer, Budget: metav1.Duration{Duration: time.Minute}}}}, t0)
		return p.Holds[key]
	}
	require.Equal(t, fleet.HoldWaiting, acquire("lca-a-x-1-1").State)
	second := acquire("lca-a-x-2-1")
	require.Equal(t, fleet.HoldRefused, second.State)
	require.Equal(t, fleet.CodeNoCapacity, second.Failure.Code)
	require.Contains(t, second.Failure.Message, "all 1 nodes it offers are taken")
	p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: "lca-a-x-1-1"}}}, t0)
	require.NotEqual(t, fleet.HoldRefused, acquire("lca-a-x-3-1").State, "there is room again")
}

// A new epoch ends the running commands of the earlier epoch. Their results do not count for any new command.
func TestResultsOfAnEarlierEpochAreIgnored(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 3))
	l.Step(fleet.GroupInput{}, t0)
	before := slices.Clone(l.Commands.Open)
	require.Len(t, before, 3)
	ahead := fleet.Position{Epoch: l.Epoch, Revision: l.Revision + 1}
	require.Error(t, l.Operate(fleet.Configure, fleet.Request{Spec: spec(), Seen: ahead}, t0))
	require.True(t, l.Recovering)
	now := t0.Add(2 * time.Second)
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone}}, now)
	require.NoError(t, l.Operate(fleet.Grow, fleet.Request{Delta: 3,
		Operation: fleet.Operation{ID: "anew", GiveUpAt: now.Add(time.Second)}}, now))
	l.Step(fleet.GroupInput{}, now)
	for _, c := range before {
		l.Step(fleet.GroupInput{Result: &fleet.Result{ID: c.ID, Outcome: fleet.OutcomeDone}}, now)
	}
	require.Len(t, l.Commands.Open, 3, "none of the three was started")
}

// Concurrent calls are separate operations. Each call is booked or refused once, even when the answer is lost and the
// calls are repeated.
func TestConcurrentCallsAreSeparateOperations(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 4))
	names := []string{}
	for _, e := range l.Entries {
		names = append(names, e.Name)
	}
	l.Entries[2].Phase, l.Entries[2].Kept = fleet.Ready, true
	call := func(id string, until time.Duration, names ...string) fleet.Call {
		return fleet.Call{Operation: fleet.Operation{ID: id, GiveUpAt: t0.Add(until)}, Names: names}
	}
	r := fleet.Request{Calls: []fleet.Call{call("a", time.Minute, names[0]), call("b", -time.Second, names[1]),
		call("c", time.Minute, names[2]), call("d", time.Minute, "another"), call("e", time.Minute, names[3])}}
	kinds := func(refused map[int]fleet.Refusal) map[int]fleet.RefusalKind {
		kinds := map[int]fleet.RefusalKind{}
		for n, why := range refused {
			kinds[n] = why.Kind
		}
		return kinds
	}
	want := map[int]fleet.RefusalKind{1: fleet.RefusedExpired, 2: fleet.RefusedPrecondition, 3: fleet.RefusedInvalid}
	for range 2 { // the answer is lost, and the calls are repeated
		require.NoError(t, l.Validate(fleet.Release, r, t0))
		refused, err := l.OperateEach(fleet.Release, r, t0)
		require.NoError(t, err)
		require.Equal(t, want, kinds(refused))
		require.Equal(t, 2, l.Target())
	}
	refused, err := l.OperateEach(fleet.Release, r, t0.Add(time.Hour))
	require.NoError(t, err)
	require.NotContains(t, refused, 0, "what has run is not given up")

	l.Recovering = true
	require.True(t, fleet.IsRefused(l.Validate(fleet.Release, r, t0), fleet.RefusedNotInitialised))
	_, err = l.OperateEach(fleet.Release, r, t0)
	require.True(t, fleet.IsRefused(err, fleet.RefusedNotInitialised))
}
