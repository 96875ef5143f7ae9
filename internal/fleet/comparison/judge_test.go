package comparison_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// A fault of the consumer cluster is published immediately, whether a step or a round finds it. A divided namespace
// stops new holds. A lack of capacity for the gateway does not. The fault ends with the first round that does not
// find it.
func TestFaultsOfTheConsumerArePublishedImmediately(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	p := provider.New("milan", now)
	p.Step(provider.Input{Result: &fleet.Result{ID: p.Commands.Last, Outcome: fleet.OutcomeDone}}, now)
	p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldNoRoom, Message: "no CPU"}}}, now)
	standing := p.Snapshot(now).Standing
	require.Equal(t, fleet.ConditionNoRoomForGateway, standing.Condition())
	require.Equal(t, "no CPU", standing.Message)
	require.False(t, standing.Closes())
	require.Contains(t, fleet.Conditions, standing.Condition())

	seen := func(at time.Time, f fleet.Fault) comparison.Outlook {
		return comparison.Outlook{At: at, Evidence: []comparison.Evidence{{
			Provider: "milan", Access: fleet.AccessGranted, Fault: f}}}
	}
	divided := fleet.Fault{Condition: fleet.ConditionNamespaceDivided, Message: "by color"}
	j := comparison.Judge(comparison.Outlook{}, seen(now, divided), nil, nil, nobody)
	standing, changed := j.Standing(p.Snapshot(now))
	require.True(t, changed, "the first round that sees it tells it")
	require.Equal(t, fleet.ConditionNamespaceDivided, standing.Condition())
	require.True(t, standing.Closes())
	require.Contains(t, fleet.Conditions, standing.Condition())

	j = comparison.Judge(j.Now, seen(now.Add(time.Minute), fleet.Fault{}), nil, nil, nobody)
	standing, changed = j.Standing(p.Snapshot(now))
	require.True(t, changed)
	require.True(t, standing.Good())
}

// Only a Ready instance that is not being deleted can be lost. If an instance is being created or released, its
// driver ends the attempt instead.
func TestOnlySettledInstancesAreLost(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	row := func(name string, phase fleet.Phase, counts bool) fleet.InstanceView {
		return fleet.InstanceView{Name: name, Phase: phase, Counts: counts, Attempt: 1, Provider: "milan"}
	}
	groups := []fleet.Snapshot{{Group: "a", Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}},
		Instances: []fleet.InstanceView{
			row("a-t0-1", fleet.Joining, true), row("a-t0-2", fleet.Ready, false), row("a-t0-3", fleet.Ready, true)}}}
	providers := []fleet.ProviderSnapshot{{ID: "milan", Phase: fleet.Established}}
	removed := func(at time.Time) comparison.Outlook {
		return comparison.Outlook{At: at, Evidence: []comparison.Evidence{{
			Provider: "milan", Access: fleet.AccessGranted, Tenant: fleet.RefusingRemoved}}}
	}
	first := comparison.Judge(comparison.Outlook{}, removed(now), groups, providers, nobody)
	require.Empty(t, first.Losses, "one round is none")
	second := comparison.Judge(first.Now, removed(now.Add(time.Minute)), groups, providers, nobody)
	require.Len(t, second.Losses["a"], 1)
	require.Equal(t, "a-t0-3", second.Losses["a"][0].Instance)
}

// Rounds start every minute, and budgets.unready is one minute here. An instance is lost when its provider has been
// silent for one minute, even when the last round begins slightly early. The group judges by its own clock how long
// the Node has not been ready.
func TestEarlyLastRoundCounts(t *testing.T) {
	start := time.Unix(2_000_000, 0)
	minute := fleet.Term{Duration: metav1.Duration{Duration: time.Minute}}
	groups := func(notReady time.Time) []fleet.Snapshot {
		spec := &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a", Budgets: fleet.Budgets{Unready: &minute}}}
		return []fleet.Snapshot{{Group: "a", Spec: spec, Instances: []fleet.InstanceView{{Name: "a-t0-1", Attempt: 1,
			Phase: fleet.Ready, Counts: true, Provider: "milan", NotReady: true, NotReadySince: notReady}}}}
	}
	for name, c := range map[string]struct {
		after, notReady time.Duration
		lost            int
	}{
		"a moment too early":              {time.Minute - 2*time.Millisecond, -time.Minute, 1},
		"by hand, much too early":         {40 * time.Second, -time.Minute, 0},
		"the Node has a second to go yet": {time.Minute, time.Second, 1},
	} {
		silent := func(at time.Time) comparison.Outlook {
			return comparison.Outlook{At: at,
				Evidence: []comparison.Evidence{{Provider: "milan", Access: fleet.AccessSilent}}}
		}
		rows := groups(start.Add(c.notReady))
		first := comparison.Judge(comparison.Outlook{}, silent(start), rows, nil, nobody)
		require.Empty(t, first.Losses, name)
		second := comparison.Judge(first.Now, silent(start.Add(c.after)), rows, nil, nobody)
		require.Len(t, second.Losses["a"], c.lost, name)
	}
}

// A granted and a refused access both count as answers. Silence, and access that was not checked, do not count as
// answers.
func TestRefusedAccessCountsAsAnswer(t *testing.T) {
	for access, want := range map[fleet.Access][2]bool{"": {}, fleet.AccessGranted: {true, false},
		fleet.AccessRefused: {true, false}, fleet.AccessSilent: {false, true}} {
		seen := saw(time.Unix(2_000_000, 0), access)
		require.Equal(t, want, [2]bool{seen.Answered(), seen.Silent()}, access)
	}
}

// After is idempotent: when the same round is applied twice, the second time changes nothing. After does not modify its
// inputs.
func TestSameRoundIsAppliedOnce(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	network := func(at time.Time, network string, heard ...string) comparison.Outlook {
		seen := saw(at, fleet.AccessGranted)
		seen.Evidence[0].Network, seen.Evidence[0].Heard = network, heard
		return seen
	}
	for name, rounds := range map[string][]comparison.Outlook{
		"works":    {network(now, "", "1", "1"), network(now.Add(time.Minute), "", "2", "2")},
		"broken":   {network(now, "Error"), network(now.Add(time.Minute), "Error")},
		"mended":   {network(now, "Error"), network(now.Add(time.Minute), "")},
		"dead":     {network(now, "", "1", "1"), network(now.Add(time.Minute), "", "1", "2")},
		"silenced": {saw(now, fleet.AccessGranted), saw(now.Add(time.Minute), fleet.AccessSilent)},
	} {
		last := rounds[0].After(comparison.Outlook{}, nobody)
		seen := rounds[1].Evidence[0]
		once := rounds[1].After(last, nobody)
		require.Equal(t, seen, rounds[1].Evidence[0], name)
		require.Equal(t, once, once.After(last, nobody), name)
	}
}

// A gateway counts as dead when it has measured nothing for three of its intervals. This limit is exact to the
// second.
func TestGatewayWithoutMeasurementsIsDead(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	for quiet, c := range map[time.Duration]struct{ ok, broken time.Duration }{
		0: {29 * time.Second, 30 * time.Second}, time.Minute: {59 * time.Second, time.Minute}} {
		at := func(after time.Duration) comparison.Outlook {
			seen := saw(now.Add(after), fleet.AccessGranted)
			seen.Evidence[0].Heard, seen.Evidence[0].Quiet = []string{"12:00", ""}, quiet
			return seen
		}
		last := at(0).After(comparison.Outlook{}, nobody)
		require.Zero(t, at(c.ok).After(last, nobody).Of("milan").Broken)
		require.Equal(t, now, at(c.broken).After(last, nobody).Of("milan").Broken)
	}
}

// The standing of a provider is the published list of its faults. It stays until two rounds agree on another
// standing. A round in which the provider was not checked, and a single deviating round, change nothing.
func TestStandingStaysUntilTwoRoundsAgree(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	published := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established,
		Standing: fleet.Standing{Access: fleet.AccessRefused, Message: "its words"}}
	broken := saw(now, fleet.AccessGranted)
	broken.Evidence[0].Network = "Error"
	cordoned := saw(now, fleet.AccessGranted)
	cordoned.Evidence[0].Tenant = fleet.RefusingCordoned
	for name, c := range map[string]struct{ last, seen comparison.Outlook }{
		"access could not be checked": {saw(now.Add(-time.Minute), ""), saw(now, "")},
		"access was not checked":      {comparison.Outlook{}, comparison.Outlook{At: now}},
		"silent once":                 {saw(now.Add(-time.Minute), fleet.AccessGranted), saw(now, fleet.AccessSilent)},
		"cut off once":                {saw(now.Add(-time.Minute), fleet.AccessGranted), broken},
		"cordoned once":               {saw(now.Add(-time.Minute), fleet.AccessGranted), cordoned},
		"refused once more":           {saw(now.Add(-time.Minute), fleet.AccessSilent), saw(now, fleet.AccessRefused)},
	} {
		j := comparison.Judge(c.last.After(comparison.Outlook{}, nobody), c.seen, nil,
			[]fleet.ProviderSnapshot{published}, nobody)
		s, changed := j.Standing(published)
		require.False(t, changed, name)
		require.Equal(t, published.Standing, s, name)
	}
}

// While no provider answers, this cluster is probably cut off. The condition reports the isolation and when it began.
func TestStandingOfAnIsolatedCluster(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	isolated := saw(now, fleet.AccessSilent)
	isolated.Isolated = true
	first := comparison.Judge(comparison.Outlook{}, isolated, nil, nil, nobody)
	isolated.At = now.Add(time.Minute)
	j := comparison.Judge(first.Now, isolated, nil, nil, nobody)
	s, changed := j.Standing(fleet.ProviderSnapshot{ID: "milan"})
	require.True(t, changed)
	require.Equal(t, fleet.Standing{Access: fleet.AccessIsolated, Since: now,
		Message: "no provider with credentials answers, so this cluster may be cut off: no instance is lost for it"}, s)
	require.Equal(t, map[string]string{"milan": fleet.ConditionConsumerIsolated},
		j.Conditions([]fleet.ProviderSnapshot{{ID: "milan"}}))
}

// The state of a Tenant counts only while the peering exists. The evidence of the round itself does not change.
func TestTenantCountsOnlyWithAPeering(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	for _, row := range fleet.PeeringMachine {
		seen := saw(now, fleet.AccessGranted)
		seen.Evidence[0].Tenant = fleet.RefusingRemoved
		j := comparison.Judge(comparison.Outlook{}, seen, nil,
			[]fleet.ProviderSnapshot{{ID: "milan", Phase: row.Phase}}, nobody)
		stands := row.Phase == fleet.Established || row.Phase == fleet.Lingering || row.Phase == fleet.Refusing
		require.Equal(t, map[bool]fleet.RefusingKind{true: fleet.RefusingRemoved}[stands], j.Now.Of("milan").Tenant,
			row.Phase)
		require.Equal(t, fleet.RefusingRemoved, seen.Evidence[0].Tenant, row.Phase)
	}
}

// Watched returns the providers that have holds or a fault and that can be reached. A provider can be reached if its
// offer, its peering or one of its nodes shows how.
func TestReachableProvidersInUseAreWatched(t *testing.T) {
	file := func(name string) fleet.Credentials { return fleet.Credentials{KubeconfigFile: name} }
	network := &fleet.Network{Mode: fleet.NetworkNone}
	standby := map[string]fleet.HoldState{"standby": fleet.HoldGranted}
	unwell := fleet.Standing{Access: fleet.AccessRefused}
	for name, c := range map[string]struct {
		p           fleet.ProviderSnapshot
		node, peers bool
		want        *fleet.Provider
	}{
		"of no use":     {p: fleet.ProviderSnapshot{Offer: &fleet.Offer{Credentials: file("offer")}}},
		"not reachable": {p: fleet.ProviderSnapshot{Holds: []string{"one"}}},
		"held": {p: fleet.ProviderSnapshot{Holds: []string{"one"}, Offer: &fleet.Offer{Credentials: file("offer"),
			Network: network}}, want: &fleet.Provider{Credentials: file("offer"), Network: network}},
		"held by a standby": {p: fleet.ProviderSnapshot{Standby: standby}, peers: true,
			want: &fleet.Provider{Credentials: file("peer")}},
		"held by both": {p: fleet.ProviderSnapshot{Holds: []string{"one"}, Standby: standby}, node: true,
			want: &fleet.Provider{Credentials: file("node")}},
		"peering before node": {p: fleet.ProviderSnapshot{Holds: []string{"one"}}, node: true, peers: true,
			want: &fleet.Provider{Credentials: file("peer")}},
		"unwell": {p: fleet.ProviderSnapshot{Standing: unwell}, peers: true,
			want: &fleet.Provider{Credentials: file("peer")}},
	} {
		var found []fleet.Found
		var peers, want []fleet.Provider
		if c.node {
			found = []fleet.Found{{Attempt: fleet.Attempt{Provider: fleet.Provider{ID: "milan", Credentials: file("node")}}}}
		}
		if c.peers {
			peers = []fleet.Provider{{ID: "milan", Credentials: file("peer")}}
		}
		if c.p.ID = "milan"; c.want != nil {
			c.want.ID = "milan"
			want = []fleet.Provider{*c.want}
		}
		providers := []fleet.ProviderSnapshot{c.p}
		require.Equal(t, want, comparison.Watched(providers, found, peers), name)
	}
}

// A Node is cordoned while its provider refuses new holds, and uncordoned afterwards. Three kinds of instances are left
// unchanged: instances that are not Ready, instances without a Node, and instances whose provider does not answer.
func TestNodesOfARefusingProviderAreCordoned(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	providers := []fleet.ProviderSnapshot{{ID: "milan", Phase: fleet.Established}}
	for name, c := range map[string]struct {
		tenant   fleet.RefusingKind
		access   fleet.Access
		phase    fleet.Phase
		node, is bool
		want     bool
	}{
		"to be cordoned":       {fleet.RefusingCordoned, fleet.AccessGranted, fleet.Ready, true, false, true},
		"it is":                {fleet.RefusingCordoned, fleet.AccessGranted, fleet.Ready, true, true, false},
		"to be uncordoned":     {"", fleet.AccessGranted, fleet.Ready, true, true, true},
		"it is not":            {"", fleet.AccessGranted, fleet.Ready, true, false, false},
		"it is drained":        {fleet.RefusingDrained, fleet.AccessGranted, fleet.Ready, true, false, false},
		"on its way out":       {fleet.RefusingCordoned, fleet.AccessGranted, fleet.Draining, true, false, false},
		"without a Node":       {fleet.RefusingCordoned, fleet.AccessGranted, fleet.Ready, false, false, false},
		"it does not answer":   {"", fleet.AccessSilent, fleet.Ready, true, true, false},
		"it refuses to answer": {"", fleet.AccessRefused, fleet.Ready, true, true, false},
	} {
		groups := []fleet.Snapshot{{Group: "a", Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}},
			Instances: []fleet.InstanceView{{
				Name: "a-t0-1", Attempt: 1, Phase: c.phase, Counts: c.phase == fleet.Ready, Provider: "milan"}}}}
		at := fleet.Attempt{Group: "a", Instance: "a-t0-1", Number: 1, Provider: fleet.Provider{ID: "milan"}}
		seen, last := saw(now, c.access), saw(now.Add(-time.Minute), c.access)
		seen.Evidence[0].Tenant, last.Evidence[0].Tenant = c.tenant, c.tenant
		j := comparison.Judge(last, seen, groups, providers, nobody)
		found := []fleet.Found{{Attempt: at, Node: c.node, Cordoned: c.is}}
		require.Equal(t, c.want, len(j.Cordons(groups, found)) == 1, name)
	}
}

// At most a third of all instances is lost at a time. The instances that their provider removed come first. The
// silent instances follow, in the order in which their Nodes became not ready, and then by name. Each loss has a
// reason. The field Silent marks the loss of a silent instance. Such a loss does not apply if the Node is ready
// again.
func TestRemovedInstancesAreLostFirst(t *testing.T) {
	start := time.Unix(2_000_000, 0)
	groups := silentGroup(start.Add(-2*time.Minute), start.Add(-3*time.Minute), start.Add(-3*time.Minute))
	seen := func(at time.Time, absent ...string) comparison.Outlook {
		o := comparison.Outlook{At: at, Evidence: []comparison.Evidence{{Provider: "milan", Access: fleet.AccessSilent},
			{Provider: "turin", Access: fleet.AccessGranted, Absent: absent},
			{Provider: "rome", Access: fleet.AccessGranted, Network: "Error"}}}
		return o
	}
	lost := func(absent ...string) fleet.Loss {
		first := comparison.Judge(comparison.Outlook{}, seen(start, absent...), groups, nil, nobody)
		second := comparison.Judge(first.Now, seen(start.Add(time.Minute), absent...), groups, nil, nobody)
		require.Len(t, second.Losses["a"], 1)
		require.Equal(t, start.Add(time.Minute), second.Now.Sentenced)
		third := comparison.Judge(second.Now, seen(start.Add(90*time.Second), absent...), groups, nil, nobody)
		require.Equal(t, second.Losses, third.Losses, "within the same minute only what the group has refused")
		return second.Losses["a"][0]
	}
	require.Equal(t, fleet.Loss{Instance: "a-t0-2", Attempt: 1, Silent: true,
		Reason: "its Node is not ready and provider milan does not answer, for longer than budgets.unready"}, lost())
	groups[0].Instances[0].Provider = "turin"
	require.Equal(t, fleet.Loss{Instance: "a-t0-1", Attempt: 1,
		Reason: "provider turin has no ResourceSlice lca-a-t0-1-1 any longer"}, lost("lca-a-t0-1-1"))
	groups[0].Instances[2].Provider, groups[0].Instances[2].NotReadySince = "rome", start.Add(-4*time.Minute)
	require.Equal(t, fleet.Loss{Instance: "a-t0-3", Attempt: 1, Silent: true,
		Reason: "its Node is not ready and the network " +
			"with provider rome does not work, for longer than budgets.unready: Error"}, lost())
	groups[0].Spec = nil
	first := comparison.Judge(comparison.Outlook{}, seen(start), groups, nil, nobody)
	require.Empty(t, comparison.Judge(first.Now, seen(start.Add(time.Minute)), groups, nil, nobody).Losses,
		"it is not configured")
}
