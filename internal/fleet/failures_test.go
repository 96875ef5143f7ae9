package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A group with a selection remembers the providers on which its attempts have failed. It passes them to the drivers
// that it starts later.
func TestGroupRemembersFailedProviders(t *testing.T) {
	for name, weigh := range map[string]bool{"weighed": true, "not weighed": false} {
		t.Run(name, func(t *testing.T) {
			l := ledger(t)
			if weigh {
				changed := spec()
				changed.Selection = &fleet.Selection{Price: 1, Failures: 1}
				require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: changed}, t0))
			}
			require.NoError(t, operate(l, fleet.Grow, 1))
			l.Step(fleet.GroupInput{}, t0)
			e := l.Find(booked(1))
			tell := func(sequence, attempt int, on string, f *fleet.Failure, at time.Time) {
				l.Step(fleet.GroupInput{Views: []fleet.View{{
					Instance: e.Name, Generation: e.Driver.Generation, Sequence: sequence, Attempt: attempt, Failure: f,
					Phase: fleet.Peering, Offer: &fleet.Offer{Provider: on},
				}}}, at)
			}
			refused := fleet.NewFailure(fleet.CodeTimeout, "milan", "", "no answer")
			tell(1, 1, "milan", nil, t0)
			tell(2, 2, "turin", refused, t0.Add(time.Minute))
			tell(3, 3, "rome", refused, t0.Add(2*time.Minute)) // a full provider has not failed
			full := fleet.NewFailure(fleet.CodeNoCapacity, "rome", "", "full")
			tell(4, 4, "pisa", full, t0.Add(3*time.Minute))
			want := map[string][]time.Time(nil)
			if weigh {
				want = map[string][]time.Time{"milan": {t0.Add(time.Minute)}}
			}
			require.Equal(t, want, l.Failures)

			require.NoError(t, operate(l, fleet.Grow, 1))
			l.Step(fleet.GroupInput{}, t0.Add(4*time.Minute))
			next := l.Find(booked(2))
			in := l.DriverInput(fleet.Command{Driver: fleet.ScaleOut, Instance: next.Name, Generation: next.Driver.Generation})
			require.Equal(t, want, in.Failures)
		})
	}
}

// A provider counts as failed only when it refused, was unreachable or exceeded its time.
func TestOnlyFaultsOfTheProviderAreRemembered(t *testing.T) {
	for _, code := range fleet.Codes {
		l := ledger(t)
		changed := spec()
		changed.Selection = &fleet.Selection{Failures: 1}
		require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: changed}, t0))
		require.NoError(t, operate(l, fleet.Grow, 1))
		l.Step(fleet.GroupInput{}, t0)
		e := l.Find(booked(1))
		l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 1,
			Attempt: 2, Failure: fleet.NewFailure(code, "milan", "", "no"), Phase: fleet.Peering,
			Offer: &fleet.Offer{Provider: "turin"}}}}, t0)
		blamed := code == fleet.CodeRefused || code == fleet.CodeUnreachable || code == fleet.CodeTimeout
		require.Equal(t, blamed, len(l.Failures) > 0, code)
	}
}

// The group remembers at most the last five failures of a provider, and for at most three hours.
func TestFailuresAreBounded(t *testing.T) {
	l := ledger(t)
	changed := spec()
	changed.Selection = &fleet.Selection{Failures: 1}
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: changed}, t0))
	require.NoError(t, operate(l, fleet.Grow, 1))
	l.Step(fleet.GroupInput{}, t0)
	e := l.Find(booked(1))
	for n := range 8 {
		f := fleet.NewFailure(fleet.CodeRefused, "milan", "", fmt.Sprint("no ", n))
		l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: n + 1,
			Attempt: n + 1, Failure: f, Phase: fleet.Peering, Offer: &fleet.Offer{Provider: "turin"}}}},
			t0.Add(time.Duration(n)*30*time.Minute))
	}
	at := func(n int) time.Time { return t0.Add(time.Duration(n) * 30 * time.Minute) }
	require.Equal(t, map[string][]time.Time{"milan": {at(3), at(4), at(5), at(6), at(7)}}, l.Failures)
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 9,
		Attempt: 9, Failure: fleet.NewFailure(fleet.CodeUnreachable, "pisa", "", "no"), Phase: fleet.Peering,
		Offer: &fleet.Offer{Provider: "turin"}}}}, at(3+6))
	require.Equal(t, at(3), l.Failures["milan"][0], "three hours to the moment")
	require.Equal(t, []time.Time{at(9)}, l.Failures["pisa"])
	late := at(9 + 7)
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 10,
		Attempt: 10, Failure: fleet.NewFailure(fleet.CodeRefused, "turin", "", "no"), Phase: fleet.Peering,
		Offer: &fleet.Offer{Provider: "rome"}}}}, late)
	require.Equal(t, map[string][]time.Time{"turin": {late}}, l.Failures)
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: spec()}, late))
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 11,
		Attempt: 10, Phase: fleet.Peering}}}, late)
	require.Empty(t, l.Failures, "failures no longer have a weight")
}
