package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

var t0 = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func spec(most int) *fleet.GroupSpec {
	return &fleet.GroupSpec{Max: most, InstanceSpec: fleet.InstanceSpec{ID: "standard", Shape: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}}}
}

// group returns a configured ledger with n booked instances. Its first recovery found no objects.
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

// settle returns a result for every open command.
func settle(l *fleet.Ledger, now time.Time) {
	for len(l.Commands.Open) > 0 {
		l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone}}, now)
	}
}

// startsSize returns the size of the activity input that starts the waiting drivers.
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

// The largest group that the configuration allows fits into Temporal's limits and decodes unchanged. Each of its
// instances has fifty refusals and a long failure, and each driver has a pending order.
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
	now = now.Add(time.Minute) // the group orders every driver to repeat its request
	l.Step(fleet.GroupInput{}, now)
	require.GreaterOrEqual(t, len(l.Commands.Open), instances)
	for day := range money.CostDays { // on the last day each node has its own provider
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
			Today: money.Money(rng.Int64N(1e9)), Total: money.Money(rng.Int64N(1e9)), Remainder: rng.Int64N(3600)}
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
	choices, err := fleet.Encode(l.Choices)
	require.NoError(t, err)
	require.Less(t, len(memo)+len(choices), 64<<10, "a visibility store on MySQL takes no larger memo")

	var back fleet.Ledger
	require.NoError(t, fleet.Decode(state, &back))
	back.Restore()
	require.Equal(t, l.Snapshot(now), back.Snapshot(now))
	require.Equal(t, l.Commands, back.Commands)

	for _, e := range l.Entries { // CA sees every instance as failed
		e.Phase = fleet.Failed
	}
	memo, err = fleet.Encode(l.Snapshot(now))
	require.NoError(t, err)
	t.Logf("all of them Failed: memo %d KiB", len(memo)>>10)
	require.Less(t, len(memo)+len(choices), 64<<10)
}

// The server reads a group's whole snapshot after each operation, so the snapshot of a thousand Ready instances must be
// small.
func TestSnapshotOfReadyInstancesIsSmall(t *testing.T) {
	l, now := group(t, 1000)
	for n, e := range l.Entries {
		e.Phase, e.Attempt, e.Registered = fleet.Ready, 1, true
		e.Since = now.Add(time.Duration(n*1371) * time.Millisecond)
		e.Offer = &fleet.Offer{Name: "milan", Provider: fmt.Sprintf("provider-%d", n%10)}
	}
	memo, err := fleet.Encode(l.Snapshot(now))
	require.NoError(t, err)
	t.Logf("1000 Ready instances: memo %d bytes", len(memo))
	require.Less(t, len(memo), 16<<10)
}

// Each start carries the spec of its group, and a spec may be large. The group therefore starts the drivers in
// several deliveries, each of which fits into Temporal's limit.
func TestStartsOfALargeSpecFit(t *testing.T) {
	const instances = 50
	l, now := group(t, 0)
	large := spec(instances)
	large.Labels = map[string]string{}
	for n := range 100 {
		large.Labels[fmt.Sprintf("%s.example.com/key-%d", strings.Repeat("k", 60), n)] = strings.Repeat("v", 63)
	}
	operate(t, l, fleet.Configure, fleet.Request{Spec: large}, now)
	operate(t, l, fleet.Grow, fleet.Request{Delta: instances}, now)
	state, err := fleet.Encode(l)
	require.NoError(t, err)

	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(now)
	var mu sync.Mutex
	started, largest, all := 0, 0, 0
	deliver := func(_ context.Context, batch []activities.Task) (results []fleet.Result, err error) {
		mu.Lock()
		defer mu.Unlock()
		text, err := json.Marshal(batch)
		largest, all = max(largest, len(text)), all+len(text)
		for _, task := range batch {
			if task.Start != nil {
				started++
			}
			results = append(results, fleet.Result{ID: task.ID, Outcome: fleet.OutcomeDone})
		}
		return results, err
	}
	env.RegisterActivityWithOptions(deliver, activity.RegisterOptions{Name: activities.NameDeliver})
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.ExecuteWorkflow(workflows.Cluster("").NodeGroup, workflows.EntityInput{Name: l.Group, State: state})
	require.True(t, env.IsWorkflowCompleted())
	require.Equal(t, instances, started)
	require.Greater(t, all, 512<<10)
	require.Less(t, largest, 512<<10)
}

// A provider with a thousand holds, and with thousands of attempts refused or released within the hour, fits into
// Temporal's limits. It fits while all holds wait for the peering, and also when all holds must be answered.
func TestBusiestProviderFits(t *testing.T) {
	const live, refused, released, each = 1000, 500, 4500, 100
	key := func(n int) string { return fleet.ObjectName(fleet.InstanceName("standard", "tot1om", n+1), n%3+1) }
	p := provider.New("milan", t0)
	for len(p.Commands.Open) > 0 {
		p.Step(provider.Input{Result: &fleet.Result{ID: p.Commands.Open[0].ID, Outcome: fleet.OutcomeDone}}, t0)
	}
	shape := spec(1).Shape
	offer := &fleet.Offer{Name: "milan-spare", Provider: "milan", Lendable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2k"), corev1.ResourceMemory: resource.MustParse("40Ti"),
		corev1.ResourcePods: resource.MustParse("1M"),
	}}
	tell := func(kind fleet.HoldRequestKind, from, n int) {
		for at := from; at < from+n; at += each {
			var requests []fleet.HoldRequest
			for k := range each {
				requests = append(requests, fleet.HoldRequest{Kind: kind, Key: key(at + k), Shape: shape, Offer: offer})
			}
			p.Step(provider.Input{Requests: requests}, t0)
		}
	}
	fits := func(when string) {
		t.Helper()
		state, err := fleet.Encode(p)
		require.NoError(t, err)
		input, err := json.Marshal(workflows.EntityInput{Name: p.ID, State: state})
		require.NoError(t, err)
		memo, err := fleet.Encode(p.Snapshot(t0))
		require.NoError(t, err)
		t.Logf("%s: continue-as-new input %d KiB, memo %d KiB", when, len(input)>>10, len(memo)>>10)
		require.Less(t, len(input), 512<<10, when)
		require.Less(t, len(memo), 64<<10, when)
	}
	tell(fleet.HoldAcquire, 0, live)
	tell(fleet.HoldAcquire, live, refused)
	tell(fleet.HoldRelease, live+refused, released)
	require.Len(t, p.Snapshot(t0).Waiting, live)
	fits("all wait")
	p.Commands.Open = nil // all commands have a result
	p.Step(provider.Input{Report: &fleet.PeeringReport{Run: p.Run, Event: fleet.PeeringDone}}, t0)
	require.Len(t, p.Commands.Open, live, "each driver gets an answer")
	require.Len(t, p.Holds, live+refused+released)
	fits("all are granted")
}
