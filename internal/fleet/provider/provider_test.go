package provider_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func shape(cpu string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
}

func lendable(n int) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(2*n), resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
}

// An unused provider closes after a day, unless an operator has cordoned it.
func TestCordonedProviderDoesNotClose(t *testing.T) {
	p := provider.New("milan", t0)
	for len(p.Commands.Open) > 0 {
		p.Step(provider.Input{Result: &fleet.Result{ID: p.Commands.Open[0].ID, Outcome: fleet.OutcomeDone}}, t0)
	}
	later, on := t0.Add(25*time.Hour), true
	require.True(t, p.Over(later))
	p.Step(provider.Input{Cordon: &on}, t0)
	require.False(t, p.Over(later))
	require.Equal(t, t0, p.Snapshot(later).Cordoned)
	require.True(t, choice.CandidateOf(fleet.Offer{}, p.Snapshot(later)).Cordoned)
	on = false
	p.Step(provider.Input{Cordon: &on}, later)
	require.True(t, p.Over(later))
}

// A provider whose workflow was terminated inherits its cordon. It does so only in its first recovery, and only when no
// operator has changed the cordon since.
func TestProviderInheritsItsCordon(t *testing.T) {
	on, off := true, false
	for name, c := range map[string]struct {
		said *bool
		want bool
	}{"inherits": {nil, true}, "uncordoned since": {&off, false}, "cordoned since": {&on, true}} {
		t.Run(name, func(t *testing.T) {
			p := provider.New("milan", t0)
			p.Step(provider.Input{Cordon: c.said, Requests: []fleet.HoldRequest{{
				Kind: fleet.HoldAcquire, Key: "lca-a-t0-1-1", Shape: shape("1"), Budget: metav1.Duration{Duration: time.Minute},
				Offer: &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2)},
			}}}, t0)
			recovered(t, p, true)
			require.Equal(t, c.want, !p.Snapshot(t0).Cordoned.IsZero())
			want := fleet.HoldWaiting
			if c.want {
				want = fleet.HoldRefused
			}
			require.Equal(t, want, p.Holds["lca-a-t0-1-1"].State)

			p.Step(provider.Input{Cordon: &off}, t0)
			for round := range int64(2) { // slices without a hold make the provider list the objects again
				p.Step(provider.Input{Differences: seen(round+1, "lca-a-t0-2-1")}, t0)
			}
			require.True(t, p.Recovering)
			recovered(t, p, true)
			require.True(t, p.Snapshot(t0).Cordoned.IsZero(), "that life is long over")
		})
	}
}

// seen returns the differences of a round in which these holds were unused.
func seen(round int64, unheld ...string) *fleet.Differences {
	return &fleet.Differences{Round: fleet.RoundID{Number: round}, Unheld: unheld}
}

// When the first recovery of a run has found no cordon to inherit, the run does not check again.
func TestCordonIsInheritedOnlyInTheFirstRecovery(t *testing.T) {
	p := provider.New("milan", t0)
	p.Step(provider.Input{}, t0)
	recovered(t, p, false)
	for round := range int64(2) {
		p.Step(provider.Input{Differences: seen(round+1, "lca-a-t0-2-1")}, t0)
	}
	require.True(t, p.Recovering)
	recovered(t, p, true)
	require.True(t, p.Snapshot(t0).Cordoned.IsZero())
}

// A hold that two rounds found unused is released, if it has not changed since the second round read the provider.
func TestUnusedHoldsAreReleased(t *testing.T) {
	for changed, want := range map[bool]fleet.HoldState{false: fleet.HoldReleased, true: fleet.HoldGranted} {
		p := provider.New("milan", t0)
		recovered(t, p, false)
		p.Phase = fleet.Established
		p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldAcquire, Key: "lca-a-t0-1-1",
			Offer: &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2)}}}}, t0)
		for round := range int64(2) {
			d := fleet.Differences{Round: fleet.RoundID{Number: round + 1}, Revision: p.Revision,
				Unused: []string{"lca-a-t0-1-1"}}
			if changed {
				d.Revision = p.Holds["lca-a-t0-1-1"].Changed - 1
			}
			p.Step(provider.Input{Differences: &d}, t0)
		}
		require.Equal(t, want, p.Holds["lca-a-t0-1-1"].State)
	}
}

// When two rounds find the peering of a standby missing, the peering is established again. In the first ten minutes
// after the peering was established, this does not happen.
func TestMissingStandbyPeeringIsMadeAgain(t *testing.T) {
	for after, want := range map[time.Duration]fleet.PeeringPhase{
		10*time.Minute - time.Second: fleet.Established, 10 * time.Minute: fleet.Repairing,
	} {
		p := provider.New("milan", t0)
		p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldAcquire, Key: fleet.StandbyKey("g", "e", 1),
			Offer: &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2)}}}}, t0)
		recovered(t, p, false)
		p.Phase, p.Since = fleet.Established, t0
		for round := range int64(2) {
			d := seen(round + 1)
			d.Unpeered = true
			p.Step(provider.Input{Differences: d}, t0.Add(after))
		}
		require.Equal(t, want, p.Phase, after)
	}
}

// The peering of a standby is repaired only when it existed before and two rounds in a row find it missing.
func TestStandbyPeeringIsMissingAfterTwoRounds(t *testing.T) {
	for _, row := range fleet.PeeringMachine {
		for seen, gone := range map[[2]bool]bool{{true, true}: true, {true, false}: false, {false, true}: false} {
			p := provider.New("milan", t0)
			recovered(t, p, false)
			p.Phase, p.Since = row.Phase, t0
			p.Holds["lca-a-t0-1-1"] = provider.Hold{Key: "lca-a-t0-1-1", State: fleet.HoldGranted}
			for round, unpeered := range seen {
				d := &fleet.Differences{Round: fleet.RoundID{Number: int64(round + 1)}, Unpeered: unpeered}
				p.Step(provider.Input{Differences: d}, t0.Add(10*time.Minute))
			}
			repairs := slices.ContainsFunc(p.Transitions(), func(m provider.Transition) bool {
				return m.Event == fleet.PeeringBroken
			})
			require.Equal(t, gone && row.Phase == fleet.Established, repairs, "%s, %v", row.Phase, seen)
		}
	}
}

// A provider closes when it has been unused for more than a day.
func TestProviderUnusedForADayCloses(t *testing.T) {
	later := t0.Add(24*time.Hour + 1)
	unused := func() *provider.State {
		p := provider.New("milan", t0)
		p.Commands.Open = nil
		return p
	}
	require.True(t, unused().Over(later))
	require.False(t, unused().Over(later.Add(-1)))
	for name, use := range map[string]func(*provider.State){
		"peered":   func(p *provider.State) { p.Phase = fleet.Lingering },
		"held":     func(p *provider.State) { p.Holds["lca-a-t0-1-1"] = provider.Hold{State: fleet.HoldReleased} },
		"asked":    func(p *provider.State) { p.Commands.Add(fleet.Command{}) },
		"cordoned": func(p *provider.State) { p.Cordoned = t0 },
	} {
		p := unused()
		use(p)
		require.False(t, p.Over(later), name)
	}
}

// A peering is established with the offer's credentials. Its budget is the longest budget of the holds that wait for
// it.
func TestPeeringUsesTheOffersCredentials(t *testing.T) {
	p := provider.New("milan", t0)
	recovered(t, p, false)
	require.Equal(t, fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"}, Run: p.Run,
		Budget:        metav1.Duration{Duration: fleet.EstablishBound},
		NetworkBudget: metav1.Duration{Duration: fleet.NetworkBound}}, p.PeeringInput())
	offer := &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(9),
		Credentials: fleet.Credentials{KubeconfigFile: "milan"}, Network: &fleet.Network{Mode: fleet.NetworkNone}}
	minutes := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	for n, budgets := range [][2]int{{3, 1}, {2, 7}, {1, 2}} {
		p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldAcquire, Key: fmt.Sprintf("lca-a-t0-%d-1", n),
			Shape: shape("1"), Offer: offer, Budget: minutes(budgets[0]), NetworkBudget: minutes(budgets[1])}}}, t0)
	}
	in := p.PeeringInput()
	require.Equal(t, fleet.Provider{ID: "milan", Credentials: offer.Credentials, Network: offer.Network}, in.Provider)
	require.Equal(t, []metav1.Duration{minutes(3), minutes(7)}, []metav1.Duration{in.Budget, in.NetworkBudget})
	p.Step(provider.Input{Report: &fleet.PeeringReport{Run: p.Run, Event: fleet.PeeringDone}}, t0)
	require.Equal(t, fleet.EstablishBound, p.PeeringInput().Budget.Duration, "no hold waits")
}

// The message of a provider's refusal is cut to a readable length.
func TestLongRefusalIsCut(t *testing.T) {
	p := provider.New("milan", t0)
	recovered(t, p, false)
	p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldRefusing,
		Refusing: &fleet.ProviderRefusal{Kind: fleet.RefusingCordoned, Reason: strings.Repeat("x", 1<<20)}}}}, t0)
	require.Equal(t, fleet.Refusing, p.Phase)
	require.Equal(t, strings.Repeat("x", 299)+"…", p.Refusing.Reason)
}

// The result of the start command names the run that was started, for a peering and for its removal.
func TestResultNamesTheStartedRun(t *testing.T) {
	for _, kind := range []fleet.CommandKind{fleet.CommandPeering, fleet.CommandUnpeering} {
		p := provider.New("milan", t0)
		recovered(t, p, false)
		p.Run = 4
		p.Commands.Add(fleet.Command{Kind: kind})
		p.Step(provider.Input{Result: &fleet.Result{ID: p.Commands.Last, Outcome: fleet.OutcomeDone}}, t0)
		require.Equal(t, 4, p.Started, kind)
	}
}

// An event that the row of a phase does not name changes nothing.
func TestIgnoredEventChangesNothing(t *testing.T) {
	events := map[fleet.PeeringEvent]bool{}
	for _, row := range fleet.PeeringMachine {
		for event := range row.Moves {
			events[event] = true
		}
	}
	require.Len(t, events, 9)
	for _, row := range fleet.PeeringMachine {
		for event := range events {
			p := provider.New("milan", t0)
			p.Phase = row.Phase
			before := p.Revision
			p.Apply(event, nil, t0.Add(time.Second))
			_, named := row.Moves[event]
			require.Equal(t, named, p.Revision != before, "%s in %s", event, row.Phase)
		}
	}
}

// recovered answers the open commands of a recovery. cordoned reports whether the provider was cordoned in its
// earlier run.
func recovered(t *testing.T, p *provider.State, cordoned bool) {
	t.Helper()
	for p.Recovering {
		require.NotEmpty(t, p.Commands.Open)
		r := &fleet.Result{ID: p.Commands.Open[0].ID, Outcome: fleet.OutcomeDone, Cordoned: cordoned}
		p.Step(provider.Input{Result: r}, t0)
	}
}

// The test checks random acquires, releases, reports and times against the invariants of a provider. No capacity is
// held twice, each waiting hold has a pending answer, and a peering is removed only without holds (invariant I11).
func TestProviderAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	p, now, linger := provider.New("milan", t0), t0, int64(30)
	p.Step(provider.Input{Result: &fleet.Result{ID: 2, Outcome: fleet.OutcomeDone}}, now)
	offer := &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2), LingerSeconds: &linger}
	visits, cpus, keys := map[fleet.PeeringPhase]int{}, map[string]int64{}, []string{}
	waits := []fleet.PeeringPhase{fleet.Establishing, fleet.Repairing, fleet.Removing}
	for n := range 20000 {
		now = now.Add(time.Duration(rng.IntN(20)) * time.Second)
		was, held, in := p.Phase, p.Live(), provider.Input{}
		switch rng.IntN(8) {
		case 0, 1:
			key, cpu := fmt.Sprintf("lca-a-x-%d-1", n), int64(1+rng.IntN(3))
			if len(keys) > 0 && rng.IntN(4) == 0 {
				key = keys[rng.IntN(len(keys))] // the same key again gets the same answer
				cpu = cpus[key]
			}
			keys, cpus[key] = append(keys, key), cpu
			in.Requests = []fleet.HoldRequest{{
				Kind: fleet.HoldAcquire, Key: key, Shape: shape(strconv.FormatInt(cpu, 10)), Offer: offer,
				Budget: metav1.Duration{Duration: 90 * time.Second},
			}}
		case 2, 3, 4:
			if all := p.LiveHolds(); len(all) > 0 {
				in.Requests = []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: all[rng.IntN(len(all))]}}
			}
		case 5, 6:
			events := []fleet.PeeringEvent{fleet.PeeringDone, fleet.PeeringDone, fleet.PeeringFailed, fleet.PeeringInUse,
				fleet.PeeringLifted}
			in.Report = &fleet.PeeringReport{Run: p.Run - rng.IntN(2), Event: events[rng.IntN(5)],
				Failure: &fleet.Failure{Code: fleet.CodeTimeout}}
			if rng.IntN(20) == 0 {
				in.Report.Refusing = &fleet.ProviderRefusal{Kind: fleet.RefusingCordoned, Reason: "no"}
			}
			if in.Report.Refusing != nil && in.Report.Event == fleet.PeeringFailed {
				in.Report.Event = fleet.PeeringRefused
			}
		case 7:
			if rng.IntN(6) == 0 {
				in.Requests = []fleet.HoldRequest{{Kind: fleet.HoldBroken}}
			} else if due := p.Due(now); due.After(now) {
				now = due
			}
		}
		p.Step(in, now)
		p.Commands.Open = nil
		if p.Phase != was {
			visits[p.Phase]++
			require.True(t, p.Phase != fleet.Removing || held == 0 || p.Live() == 0, "removed while held")
		}
		requireProvider(t, p, cpus, waits)
		if due := p.Due(now); !due.IsZero() {
			require.True(t, due.After(now), "due %s at %s in %s", due, now, p.Phase)
		}
	}
	for _, row := range fleet.PeeringMachine {
		require.Greater(t, visits[row.Phase], 50, "%s was hardly seen: %v", row.Phase, visits)
	}
}

func requireProvider(t *testing.T, p *provider.State, cpus map[string]int64, waits []fleet.PeeringPhase) {
	t.Helper()
	used := int64(0)
	for key, h := range p.Holds {
		switch h.State {
		case fleet.HoldWaiting:
			used += cpus[key]
			require.Contains(t, waits, p.Phase, "%s waits", key)
		case fleet.HoldGranted:
			used += cpus[key]
			require.True(t, slices.Contains([]fleet.PeeringPhase{fleet.Established, fleet.Repairing, fleet.Refusing},
				p.Phase), "granted in %s",
				p.Phase)
		}
	}
	require.LessOrEqual(t, used, int64(4), "more is held than there is")
	if free := p.Free(); free != nil {
		require.Equal(t, 4-used, free.Cpu().Value(), "only live holds take of the offer")
	}
	if p.Refusing != nil {
		require.Empty(t, p.Snapshot(t0).Waiting, "the provider refuses us")
	}
	require.True(t, p.Live() > 0 || p.Phase != fleet.Established, "established without a hold")
}

// A peering carries the span of the first hold that waits for it. The span of a hold that no longer waits is dropped.
func TestPeeringCarriesTheSpanOfItsFirstHold(t *testing.T) {
	p := provider.New("milan", t0)
	recovered(t, p, false)
	require.Empty(t, p.Trace())
	for _, number := range []string{"1", "2"} {
		p.Step(provider.Input{Requests: []fleet.HoldRequest{{
			Kind: fleet.HoldAcquire, Key: "lca-a-t0-" + number + "-1", Shape: shape("1"), Trace: "span-" + number,
			Offer: &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2)},
		}}}, t0)
	}
	require.Equal(t, "span-1", p.Trace())
	p.Step(provider.Input{Report: &fleet.PeeringReport{Run: p.Run, Event: fleet.PeeringDone}}, t0)
	require.Equal(t, fleet.HoldGranted, p.Holds["lca-a-t0-1-1"].State)
	require.Empty(t, p.Trace())
	require.Empty(t, p.Holds["lca-a-t0-1-1"].Trace)
}
