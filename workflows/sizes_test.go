package workflows_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/money"
)

var t0 = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func spec(most int) *fleet.GroupSpec {
	return &fleet.GroupSpec{ID: "standard", Max: most, Shape: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}}
}

// group is a configured ledger that has recovered from nothing, and grown.
func group(t *testing.T, n int) (*fleet.Ledger, time.Time) {
	t.Helper()
	l := fleet.NewLedger("standard", t0)
	now := t0.Add(2 * time.Second)
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone}}, now)
	operate(t, l, fleet.Configure, fleet.Request{Spec: spec(max(n, 1))}, now)
	if n > 0 {
		operate(t, l, fleet.Grow, fleet.Request{Delta: n}, now)
	}
	l.Step(fleet.GroupInput{}, now)
	return l, now
}

var operations int

func operate(t *testing.T, l *fleet.Ledger, verb fleet.Verb, r fleet.Request, now time.Time) {
	t.Helper()
	operations++
	r.Operation = fleet.Operation{ID: fmt.Sprintf("op-%d", operations), GiveUpAt: now.Add(time.Minute)}
	require.NoError(t, l.Operate(verb, r, now))
}

// settle answers every open command.
func settle(l *fleet.Ledger, now time.Time) {
	for len(l.Commands.Open) > 0 {
		l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone}}, now)
	}
}

// startsSize is how large an activity's input is that starts the drivers that are to be started now.
func startsSize(t *testing.T, l *fleet.Ledger) int {
	t.Helper()
	var batch []activities.Task
	for _, cmd := range l.Commands.Open {
		if in := l.DriverInput(cmd); cmd.Kind == fleet.CommandStart && in != nil && len(batch) < 100 {
			batch = append(batch, activities.Task{ID: cmd.ID, Kind: cmd.Kind, Group: l.Group, Start: &activities.Start{
				Type: workflows.TypeScaleOut, ID: workflows.DriverID(cmd.Driver, cmd.Instance), Driver: in,
			}})
		}
	}
	text, err := json.Marshal(batch)
	require.NoError(t, err)
	return len(text)
}

// The largest group that the configuration allows, each instance refused by fifty providers and with a long failure,
// fits in what Temporal takes, with an order open to each of its drivers, and reads back as it was.
func TestLargestGroupFits(t *testing.T) {
	const instances, providers = 1000, 50
	rng := rand.New(rand.NewPCG(1, 2))
	var ids []string
	for range providers {
		ids = append(ids, fmt.Sprintf("provider-%08x-%04x-4b8f-%012x", rng.Uint32(), rng.Uint32()&0xffff,
			rng.Uint64()&0xffffffffffff))
	}
	l, now := group(t, instances)
	started, largest := 0, 0
	for n := 0; started < instances; n++ {
		require.Less(t, n, 100, "all are started")
		now = now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
		var views []fleet.View
		for _, e := range l.Entries {
			if e.Driver.Kind != fleet.ScaleOut || e.Driver.Sequence > 0 {
				continue
			}
			started++
			rng.Shuffle(providers, func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
			at := ids[0]
			views = append(views, fleet.View{
				Instance: e.Name, Generation: e.Driver.Generation, Sequence: 2*providers + rng.IntN(9), Began: now,
				Phase: fleet.Peering, Attempt: providers,
				Offer: &fleet.Offer{Name: at, Provider: at,
					Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "liqo-autoscaler", Name: at}}},
				Refused: append([]string{}, ids...),
				Failure: fleet.NewFailure(fleet.CodeTimeout, at, "tenant", fmt.Sprintf("%d %s", rng.Uint64(),
					strings.Repeat("the provider "+at+" has not answered; ", 20))),
			})
		}
		l.Step(fleet.GroupInput{Views: views}, now)
		largest = max(largest, startsSize(t, l))
	}
	t.Logf("the largest batch of starts: %d KiB", largest>>10)
	require.Less(t, largest, 512<<10)
	now = now.Add(time.Minute) // all are to ask their providers again
	l.Step(fleet.GroupInput{}, now)
	require.GreaterOrEqual(t, len(l.Commands.Open), instances)
	for day := range money.CostDays { // the last of which all nodes are on providers of their own
		d := money.CostDay{Date: now.AddDate(0, 0, day-money.CostDays).Format(time.DateOnly),
			Providers: map[string]money.Money{}}
		for _, id := range ids[:20] {
			d.Providers[id] = money.Money(rng.Int64N(1e9))
		}
		d.Providers[money.OtherProviders] = money.Money(rng.Int64N(1e9))
		l.CostDays = append(l.CostDays, d)
	}
	require.Len(t, l.Choices, fleet.Choices)
	days, err := fleet.Encode(l.CostDays)
	require.NoError(t, err)
	t.Logf("costs of %d days: %d KiB", money.CostDays, len(days)>>10)
	require.Less(t, len(days), 96<<10)
	l.Cost.Providers = map[string]money.ProviderCost{}
	for _, id := range ids {
		l.Cost.Providers[id] = money.ProviderCost{Rate: money.Money(rng.Int64N(1e9)), Nodes: 1,
			Today: money.Money(rng.Int64N(1e9)), Total: money.Money(rng.Int64N(1e9)), Rest: rng.Int64N(3600)}
	}
	state, err := fleet.Encode(l)
	require.NoError(t, err)
	input, err := json.Marshal(workflows.EntityInput{Name: l.Group, State: state})
	require.NoError(t, err)
	memo, err := fleet.Encode(l.Snapshot(now))
	require.NoError(t, err)
	t.Logf("%d instances with %d refusals each: continue-as-new input %d KiB, memo %d KiB", instances, providers,
		len(input)>>10, len(memo)>>10)
	require.Less(t, len(input), 512<<10)
	require.Less(t, len(memo), 64<<10)

	var back fleet.Ledger
	require.NoError(t, fleet.Decode(state, &back))
	back.Restore()
	require.Equal(t, l.Snapshot(now), back.Snapshot(now))
	require.Equal(t, l.Commands, back.Commands)

	for _, e := range l.Entries { // all failed, as CA sees them
		e.Phase = fleet.Failed
	}
	memo, err = fleet.Encode(l.Snapshot(now))
	require.NoError(t, err)
	t.Logf("all of them Failed: memo %d KiB", len(memo)>>10)
	require.Less(t, len(memo), 64<<10)
}
