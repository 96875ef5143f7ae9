package show_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func list(cpu, memory, gpu string) corev1.ResourceList {
	l := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("110")}
	if gpu != "" {
		l["nvidia.com/gpu"] = resource.MustParse(gpu)
	}
	return l
}

// snapshots returns groups with instances in every phase and with every type of problem.
func snapshots() []fleet.Snapshot {
	epoch := fleet.NewEpoch(ago(50 * time.Hour))
	name := func(group string, seq int) string { return fleet.InstanceName(group, epoch, seq) }
	view := func(seq int, phase fleet.Phase, state fleet.State, since time.Duration, attempt int,
		provider string) fleet.InstanceView {
		return fleet.InstanceView{Name: name("standard", seq), Phase: phase, State: state,
			Counts:  state != fleet.StateDeleting,
			Attempt: attempt, Provider: provider, Since: ago(since), Registered: phase == fleet.Ready}
	}
	failed := view(6, fleet.Failed, fleet.StateCreating, 3*time.Minute, 2, "turin")
	failed.Failure = fleet.NewFailure(fleet.CodeUnreachable, "turin", "reach",
		"provider turin: its API does not answer at https://10.0.0.7:6443: dial tcp 10.0.0.7:6443:\n\ti/o timeout; check "+
			"the kubeconfig and the network")
	stuck := view(7, fleet.Unpeering, fleet.StateDeleting, 3*time.Hour, 1, "milan")
	stuck.Stuck = "cancelled"
	notReady := view(5, fleet.Ready, fleet.StateRunning, 5*time.Hour, 1, "milan")
	notReady.NotReady = true
	retried := view(3, fleet.Joining, fleet.StateCreating, 9*time.Second, 2, "turin")
	retried.Failure = fleet.NewFailure(fleet.CodeNoCapacity, "milan", "", "provider milan: needs cpu 2, 1 is free")
	spec := fleet.GroupSpec{Max: 10, InstanceSpec: fleet.InstanceSpec{ID: "standard", Shape: list("2", "4Gi", "")}}
	gpu := fleet.GroupSpec{Min: 1, Max: 4, InstanceSpec: fleet.InstanceSpec{ID: "gpu-10", Shape: list("8", "32Gi", "1")}}
	return []fleet.Snapshot{
		{Group: "standard", Epoch: epoch, Revision: 42, Target: 6, Max: 10, SpecHash: "0a1b2c3d4e5f", Spec: &spec,
			At: ago(time.Second), Instances: []fleet.InstanceView{
				view(1, fleet.Pending, fleet.StateCreating, 0, 0, ""),
				view(2, fleet.Discovering, fleet.StateCreating, time.Second, 0, ""), retried,
				view(4, fleet.Ready, fleet.StateRunning, 26*time.Hour, 1, "milan"), notReady, failed, stuck,
				view(8, fleet.Draining, fleet.StateDeleting, 90*time.Second, 1, "milan"),
			}},
		{Group: "gpu-10", Epoch: fleet.NewEpoch(ago(10 * 24 * time.Hour)), Revision: 3, Min: 1, Max: 4,
			SpecHash: "ffffeeeedddd", Spec: &gpu, Paused: true, At: ago(time.Minute), Standby: []fleet.Standby{
				{Provider: "milan", Key: "standby/gpu-10/t-1", State: fleet.HoldGranted, Since: ago(2 * time.Hour)},
				{Provider: "turin", Key: "standby/gpu-10/t-2", State: fleet.HoldWaiting, Since: ago(3 * time.Second)}}},
		{Group: "gpu-9", Epoch: fleet.NewEpoch(ago(time.Minute)), Revision: 1, At: ago(time.Minute)}, // no config yet
	}
}

func offers() ([]fleet.ProviderSnapshot, []fleet.Offer) {
	expires := now.Add(6 * time.Hour)
	milan := fleet.Offer{Name: "milan", Provider: "c-milan", Lendable: list("8", "16Gi", ""), Price: 0.08,
		Labels: map[string]string{"country": "it", "city": "milan"}}
	turin := fleet.Offer{Name: "turin", Provider: "c-turin", Lendable: list("16", "32Gi", "4"), MaxNodes: 1,
		Prices:   map[corev1.ResourceName]float64{"memory": 0.004, "cpu": 0.03, "nvidia.com/gpu": 1.2},
		Currency: "EUR", Expires: &expires}
	old, free := milan, list("4500m", "8Gi", "")
	old.Price, free[corev1.ResourcePods] = 0.05, resource.MustParse("-110")
	return []fleet.ProviderSnapshot{
		{
			ID: "c-milan", Phase: fleet.Established, Since: ago(3 * time.Hour), Offer: &old, Free: free,
			Holds: []string{"lca-standard-abc-1-1", "lca-standard-abc-2-1"}, Waiting: []string{"lca-standard-abc-2-1"},
		},
		{
			ID: "c-gone", Phase: fleet.CoolOff, Since: ago(20 * time.Second),
			Failure: fleet.NewFailure(fleet.CodeTimeout, "c-gone", "tunnel",
				"provider c-gone: the tunnel did not come up in 90s"),
			Offer: &fleet.Offer{Name: "gone", Provider: "c-gone", Lendable: list("4", "8Gi", "")},
			Free:  list("4", "8Gi", ""),
		},
		{
			ID: "c-closed", Phase: fleet.Refusing, Since: ago(2 * time.Hour), Free: list("4", "8Gi", ""),
			Offer: &fleet.Offer{Name: "closed", Provider: "c-closed", Lendable: list("4", "8Gi", "")},
			Refusing: &fleet.ProviderRefusal{Kind: fleet.RefusingCordoned,
				Reason: "the provider has set our Tenant liqo-tenant-munich/munich to Cordoned"},
		},
		{ID: "c-found", Phase: fleet.Lingering, Since: ago(time.Minute)}, // rebuilt from the existing objects
	}, []fleet.Offer{milan, turin}
}

// unreachable returns the provider milan. It does not answer.
func unreachable() fleet.ProviderSnapshot {
	return fleet.ProviderSnapshot{ID: "milan", Standing: fleet.Standing{Access: fleet.AccessSilent,
		Since:   ago(7 * time.Minute),
		Message: "observe provider milan: cannot look: connection refused"}}
}

// cordoned returns the provider milan, which does not answer, after an operator has cordoned it.
func cordoned() fleet.ProviderSnapshot {
	p := unreachable()
	p.Phase, p.Cordoned = fleet.Established, ago(time.Hour)
	return p
}

// differing returns a status with three findings: a node of the group differs from the template, pods do not run, and
// a provider still has an object of ours that should be removed.
func differing() show.Status {
	s := show.StatusOf(nil, snapshots()[1])
	return s.Found(market.Findings{
		Nodes: []market.DifferentNode{{Node: "gpu-10-abc-1-1", Group: "gpu-10", Differs: "label tier is x instead of " +
			"burst; taint quarantine:NoSchedule is not in the template; allocatable cpu is 1 instead of 2"}},
		MoreNodes: 12,
		Left: []market.Left{{Provider: "milan", Since: ago(5 * time.Minute),
			Object:      "ResourceSlice liqo-tenant-consumer/gpu-10-abb-7-1",
			KeptBecause: "it is removed if it still exists after ten minutes"}},
		Pods: []market.PodsWaiting{
			{Provider: "milan", Group: "gpu-10", Verdict: "NotStarting", Count: 3, Overdue: 2, Pod: "shop/web-0",
				Since: ago(12 * time.Minute), Why: "container main waits: ImagePullBackOff: Back-off pulling image web:9"},
			{Provider: "paris", Group: "gpu-10", Verdict: "PendingOnProvider", Count: 1, Pod: "shop/web-7",
				Since: ago(2 * time.Minute), Why: "0/3 nodes are available: 3 Insufficient cpu."}},
	})
}

// costly returns groups whose nodes have known and unknown prices, and whose costs have reached limits.
func costly() show.Status {
	groups := snapshots()
	hour, month := 1.5, 1000.
	groups[0].Spec.Currency = "EUR"
	groups[0].Spec.Spending = &money.Spending{Hourly: money.SpendingLimit{Soft: &hour},
		Monthly: money.SpendingLimit{Soft: &hour, Hard: &month}}
	groups[0].Cost = money.Cost{Currency: "EUR", Since: ago(70 * 24 * time.Hour), At: now, Month: money.Of(123.456),
		Providers: map[string]money.ProviderCost{
			"milan": {Rate: money.Of(1.6), Nodes: 4, Unpriced: 1, Today: money.Of(12), Total: money.Of(2345.678)},
			"turin": {Today: money.Of(0.004), Total: money.Of(0.004)}}}
	groups[1].Cost = money.Cost{Currency: "EUR", Since: ago(time.Hour), At: now,
		Providers: map[string]money.ProviderCost{"paris": {Nodes: 2, Unpriced: 2}}}
	return show.StatusOf(nil, groups...).Found(market.Findings{Kept: []market.KeptNode{
		{Provider: "milan", Group: "standard", Node: "lca-standard-abc-4-1", Claims: 2, Claim: "shop/data-0"},
		{Provider: "paris", Group: "gpu-10", Node: "lca-gpu-10-abc-1-1", Claims: 1, Claim: "ml/model"}}})
}

// blocked returns groups that cannot grow, or that do not follow their config, each for a different reason. One group
// has no such reason.
func blocked() show.Status {
	hour, month := 0.3, 10.
	group := func(name string, change func(*fleet.Snapshot)) fleet.Snapshot {
		s := fleet.Snapshot{Group: name, Epoch: fleet.NewEpoch(ago(time.Hour)), Revision: 1, Max: 4, Target: 2,
			SpecHash: "0a1b2c3d4e5f", At: now, Spec: &fleet.GroupSpec{Max: 4, InstanceSpec: fleet.InstanceSpec{ID: name,
				Shape: list("2", "4Gi", "")}},
			Cost: money.Cost{Currency: "USD", Since: ago(time.Hour), At: now, Month: money.Of(10.5),
				Providers: map[string]money.ProviderCost{"c-milan": {Rate: money.Of(0.25), Nodes: 2}}}}
		change(&s)
		return s
	}
	all := []fleet.Snapshot{
		group("free", func(*fleet.Snapshot) {}),
		group("full", func(s *fleet.Snapshot) { s.Target = 4 }),
		group("hour", func(s *fleet.Snapshot) {
			s.Spec.Spending = &money.Spending{Hourly: money.SpendingLimit{Hard: &hour}}
		}),
		group("month", func(s *fleet.Snapshot) {
			s.Spec.Spending = &money.Spending{Monthly: money.SpendingLimit{Hard: &month}}
		}),
		group("changed", func(s *fleet.Snapshot) {
			s.Paused, s.Notice = true, fleet.GroupNotice{Name: fleet.BlockChangeNotInForce,
				Message: "shape changed, but only in " +
					"the config: give the changed group a new id, and remove the old one"}
		}),
		group("failing", func(s *fleet.Snapshot) { s.Condition = "many drivers fail their workflow tasks" }),
	}
	_, offered := offers()
	return show.StatusOf(nil, all...).Priced(all, nil, []choice.Candidate{{Offer: offered[0]}}, now)
}

// If no prices are known, status shows a spending limit when it is used up. If prices are known, status shows the
// limit when the rest of the budget does not suffice for one more node.
func TestSpendingLimitIsShownWhenNoNodeFits(t *testing.T) {
	hour := 0.3
	s := snapshots()[0]
	s.Spec.Spending = &money.Spending{Hourly: money.SpendingLimit{Hard: &hour}}
	s.Cost = money.Cost{Currency: "USD", Since: ago(time.Hour), At: now,
		Providers: map[string]money.ProviderCost{"c-milan": {Rate: money.Of(0.25), Nodes: 3}}}
	status := show.StatusOf(nil, s)
	require.Empty(t, status.Groups[0].Conditions)
	require.Empty(t, status.Priced([]fleet.Snapshot{s}, nil, nil, now).Groups[0].Conditions)
	_, offered := offers()
	at := func(price float64) []fleet.GroupNotice {
		offered[0].Price = price
		return status.Priced([]fleet.Snapshot{s}, nil, []choice.Candidate{{Offer: offered[0]}}, now).Groups[0].Conditions
	}
	require.Equal(t, fleet.BlockSpendingLimit, at(0.06)[0].Name)
	require.Empty(t, at(0.05))
}

func TestDocumentsMatchTheirGoldenFiles(t *testing.T) {
	providers, offered := offers()
	documents := map[string]output.Document{
		"status":            show.StatusOf(nil, snapshots()...),
		"status-conditions": show.StatusOf(nil, snapshots()...).With([]fleet.ProviderSnapshot{{ID: "well"}, unreachable()}),
		"status-refused": show.Status{Groups: show.StatusOf(nil, snapshots()[1]).Groups,
			Refusing: show.RefusingOf(providers)},
		"status-costs":    costly(),
		"status-blocked":  blocked(),
		"status-idle":     show.StatusOf(nil, snapshots()[1]),
		"status-nothing":  show.StatusOf(nil),
		"offers":          show.OffersOf(providers, nil, &fleet.GroupSpec{}),
		"offers-source":   show.OffersOf(providers, offered, &fleet.GroupSpec{}),
		"offers-nothing":  show.OffersOf(nil, nil, nil),
		"offers-cordoned": show.OffersOf([]fleet.ProviderSnapshot{cordoned()}, nil, nil),
		"status-cordoned": show.StatusOf(nil, snapshots()[1]).With([]fleet.ProviderSnapshot{cordoned()}),
		"status-findings": differing(),
	}
	for name, d := range documents {
		for _, format := range output.Formats {
			t.Run(name+"."+format, func(t *testing.T) {
				var out bytes.Buffer
				require.NoError(t, output.Print(&out, format, output.Style{Now: now}, d))
				golden.Check(t, filepath.Join("testdata", name+"."+format), out.String())
			})
		}
		t.Run(name+".narrow", func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, output.Print(&out, "table", output.Style{Now: now, Width: 60}, d))
			golden.Check(t, filepath.Join("testdata", name+".narrow"), out.String())
		})
	}
}

// The JSON of a status can be decoded without loss.
func TestJSONRoundTrip(t *testing.T) {
	status := show.StatusOf(nil, snapshots()...)
	var out bytes.Buffer
	require.NoError(t, output.JSON(&out, status))
	var again show.Status
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&again))
	require.Equal(t, status.Instances, again.Instances)
	require.Equal(t, len(status.Groups), len(again.Groups))
}

// alone returns the balance of a group that shares its account with no other group.
func alone(s fleet.Snapshot) money.Balance { return s.Balance([]fleet.Snapshot{s}, nil, s.At) }

func TestChangesOfInstancesAreListed(t *testing.T) {
	before := snapshots()[0]
	require.Len(t, show.Changes(fleet.Snapshot{}, before, alone), len(before.Instances), "all are new")
	require.Empty(t, show.Changes(before, before, alone))

	after := before
	after.At, after.Target = now, 5
	after.Instances = append([]fleet.InstanceView{}, before.Instances...)
	after.Instances[0].Phase = fleet.Discovering
	after.Instances[3].Since = now // this change is not shown
	after.Instances[5].Failure = fleet.NewFailure(fleet.CodeTimeout, "turin", "", "another reason")
	after.Instances = after.Instances[:7]
	changes := show.Changes(before, after, alone)
	var out bytes.Buffer
	require.NoError(t, show.ChangeHeader(&out, output.Style{}))
	for _, c := range changes {
		c.At = c.At.In(time.Local)
		require.NoError(t, c.Row(&out, output.Style{Now: now}))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	require.Contains(t, lines[1], "Discovering       5  -                   0")
	require.Contains(t, lines[2], "Timeout: another reason")
	require.Contains(t, lines[3], "Released")
	require.False(t, changes[2].Counts)
	for _, line := range lines {
		require.Equal(t, strings.TrimRight(line, " "), line)
	}
}

// If the conditions of a group change, the list contains a change for the group. If only a number in a message
// changes, the list contains no change.
func TestConditionChangesAreListed(t *testing.T) {
	before := snapshots()[0]
	full := before
	full.At, full.Target = now, 10
	changes := show.Changes(before, full, alone)
	require.Len(t, changes, 1)
	line := func(c show.Change) string {
		c.At = c.At.In(time.Local)
		var out bytes.Buffer
		require.NoError(t, c.Row(&out, output.Style{Now: now}))
		return out.String()
	}
	require.Regexp(t, `  group standard +- +10  - +-  AtMax: its target size 10 is its max\n$`, line(changes[0]))
	fuller := full
	fuller.Target = 11
	require.Empty(t, show.Changes(full, fuller, alone))
	over := show.Changes(full, before, alone)
	require.Len(t, over, 1)
	require.Regexp(t, `  group standard +- +6  - +-  no condition\n$`, line(over[0]))
}

// The costs of all groups of an account count towards the account's limit, including the costs of ended groups.
func TestSharedAccountReachesItsLimit(t *testing.T) {
	month := 10.
	before := snapshots()[0]
	before.Spec.Spending = &money.Spending{Account: "team", Monthly: money.SpendingLimit{Hard: &month}}
	before.Cost = money.Cost{Currency: "USD", Since: ago(time.Hour), At: now}
	after := before
	after.Revision++
	reached := func(s fleet.Snapshot) money.Balance {
		if s.Revision == before.Revision {
			return alone(s)
		}
		return s.Balance([]fleet.Snapshot{s}, []money.Spent{{Account: "team", Currency: "USD",
			Month: "2026-11", Amount: money.Of(11)}}, now)
	}
	changes := show.Changes(before, after, reached)
	require.Len(t, changes, 1)
	require.Equal(t, fleet.BlockSpendingLimit, changes[0].Conditions[0].Name)
	require.Empty(t, show.Changes(before, after, alone))
}

func TestUnknownFormatIsRefused(t *testing.T) {
	require.NoError(t, output.CheckFormat("wide"))
	require.EqualError(t, output.CheckFormat("xml"), `--output "xml": use table, wide, json, yaml`)
}
