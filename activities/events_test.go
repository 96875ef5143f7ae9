package activities_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// board records the Kubernetes Events as lines "reason node: message".
type board struct {
	mu    sync.Mutex
	lines []string
}

func (b *board) Record(n activities.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, string(n.Reason)+" "+n.Node+": "+n.Message)
}

func (b *board) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lines)
}

// Each step records an Event when it begins and when it ends. An Event of a failure begins with the failure's code. A
// step that Temporal retries records no Event at the end of a run.
func TestStepsRecordEvents(t *testing.T) {
	at := attempt("a-t0-1")
	drain := activities.DrainInput{Attempt: at, Budget: metav1.Duration{Duration: 10 * time.Second}}
	forced := drain
	forced.Force = true
	gone := activities.ReturnInput{Attempt: at, View: &fleet.View{Instance: "a-t0-1", Phase: fleet.Unpeering, Attempt: 1}}
	peer := fleet.PeeringInput{Provider: at.Provider, Run: 3}
	failed := &fleet.View{Instance: "a-t0-1", Phase: fleet.Failed,
		Failure: fleet.NewFailure(fleet.CodeNoOffer, "", "", "none")}
	stuck := &fleet.View{Instance: "a-t0-1", Phase: fleet.Draining, Stuck: "cancelled"}
	report := &fleet.PeeringReport{Run: 3, Event: fleet.PeeringFailed,
		Failure: fleet.NewFailure(fleet.CodeTimeout, "milan", "tenant", "silent")}
	const granted = "Joining lca-a-t0-1-1: provider milan has granted it: ResourceSlice and VirtualNode are being created"
	const begun = "Draining lca-a-t0-1-1: instance a-t0-1 is released: its pods are evicted"
	for name, c := range map[string]struct {
		call  func(*activities.Activities) (do, arg any)
		verb  func(context.Context) error
		spent time.Duration
		want  []string
	}{
		"a node is ready": {
			call: func(a *activities.Activities) (any, any) { return a.Join, joining() },
			want: []string{granted, "NodeReady lca-a-t0-1-1: instance a-t0-1 of node group a is ready on provider milan"},
		},
		"a provider refuses": {
			call: func(a *activities.Activities) (any, any) { return a.Join, joining() }, verb: fails(backend.ErrDenied),
			want: []string{granted, "AttemptFailed lca-a-t0-1-1: Refused: provider milan: denied by the provider"},
		},
		"a node takes another pass": {
			call: func(a *activities.Activities) (any, any) { return a.Join, joining() },
			verb: fails(backend.ErrUnreachable), spent: time.Second, want: []string{granted},
		},
		"a node is drained": {
			call: func(a *activities.Activities) (any, any) { return a.Drain, drain },
			want: []string{begun, "Drained lca-a-t0-1-1: no pod is left on the node; the slice is returned to provider milan"},
		},
		"pods do not go": {
			call: func(a *activities.Activities) (any, any) { return a.Drain, drain },
			verb: fails(backend.ErrUnreachable), spent: 10 * time.Second,
			want: []string{begun, "DrainFailed lca-a-t0-1-1: Unreachable: the pods that are left are deleted: " +
				"not done within 10s: provider unreachable"},
		},
		"a node is lost": {
			call: func(a *activities.Activities) (any, any) { return a.Drain, forced }, verb: fails(backend.ErrUnreachable),
			want: []string{"Lost lca-a-t0-1-1: instance a-t0-1 is lost: its pods are deleted without waiting"},
		},
		"a node is gone": {
			call: func(a *activities.Activities) (any, any) { return a.Return, gone },
			want: []string{"Released lca-a-t0-1-1: node and slice are gone, here and on provider milan; " +
				"containers of its pods may still use their grace period there"},
		},
		"an attempt is undone": {
			call: func(a *activities.Activities) (any, any) { return a.Return, activities.ReturnInput{Attempt: at} },
			want: []string{"AttemptUndone lca-a-t0-1-1: node and slice are gone, here and on provider milan"},
		},
		"a peering is made": {
			call: func(a *activities.Activities) (any, any) { return a.Establish, peer },
			want: []string{"PeeringEstablished : peering with provider milan is established"},
		},
		"a peering is removed": {
			call: func(a *activities.Activities) (any, any) { return a.RemovePeering, peer },
			want: []string{"PeeringRemoved : peering with provider milan is removed, or was not ours"},
		},
		"a peering is used": {
			call: func(a *activities.Activities) (any, any) { return a.RemovePeering, peer }, verb: fails(backend.ErrInUse),
		},
		"a peering fails": {
			call: func(a *activities.Activities) (any, any) {
				return a.Report, activities.ReportInput{Provider: "milan", Report: report}
			},
			want: []string{"PeeringFailed : Timeout: peering with provider milan: silent"},
		},
		"an instance fails": {
			call: func(a *activities.Activities) (any, any) {
				return a.Report, activities.ReportInput{Group: "a", View: failed}
			},
			want: []string{"InstanceFailed : NoOffer: instance a-t0-1: none"},
		},
		"a scale-in is cancelled": {
			call: func(a *activities.Activities) (any, any) {
				return a.Report, activities.ReportInput{Group: "a", View: stuck}
			},
			want: []string{"InstanceStuck : instance a-t0-1 in Draining: cancelled; the next DeleteNodes or " +
				"the signal retry continues its removal"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shown := &board{}
			do, arg := c.call(&activities.Activities{Backend: &world{verb: c.verb}, Messages: &messages{}, Catalog: offering{},
				Entities: running(), Events: shown, Now: (&wall{at: noon}).now})
			b := &beats{}
			if c.spent > 0 {
				b.before = &activities.Beat{Spent: c.spent, At: noon}
			}
			_ = ended(t, do, arg, b.env)
			require.Equal(t, c.want, shown.all())
		})
	}
}

// The Event of a cancelled step names the stage for which the step waited. It does not report a failure.
func TestCancelledJoinIsRecordedAsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	shown := &board{}
	a := &activities.Activities{Entities: running(), Events: shown,
		Backend: &world{verb: func(ctx context.Context) error { cancel(); return hangs(ctx) }}}
	_ = ended(t, a.Join, joining(), under(ctx))
	require.Contains(t, shown.all(),
		"AttemptCancelled lca-a-t0-1-1: provider milan: waiting for slice-auth: no answer yet")
}

// Select chooses a provider after a failed attempt. The Event of the choice carries the name of the future Node. The
// Event of the failure carries the name of the failed attempt's Node.
func TestChoiceIsRecordedForTheFutureNode(t *testing.T) {
	shown := &board{}
	offer := fleet.Offer{Name: "turin", Provider: "turin", Lendable: cpu("4")}
	in := activities.SelectInput{
		Spec:  fleet.InstanceSpec{ID: "a", Shape: cpu("2")},
		Found: activities.DiscoverOutput{Candidates: []choice.Candidate{{Offer: offer, Free: cpu("4")}}},
		View: fleet.View{Instance: "a-t0-1", Phase: fleet.Selecting, Attempt: 1, Offer: &fleet.Offer{Provider: "milan"},
			Failure: fleet.NewFailure(fleet.CodeTimeout, "milan", "tenant", strings.Repeat("long ", 100))},
	}
	a := &activities.Activities{Messages: &messages{}, Events: shown, Now: (&wall{at: noon}).now}
	_, err := run[activities.SelectOutput](t, a.Select, in)
	require.NoError(t, err)
	require.Len(t, shown.all(), 2)
	require.Contains(t, shown.all()[0], "AttemptFailed lca-a-t0-1-1: Timeout: provider milan: long long")
	require.Less(t, len(shown.all()[0]), 400, "messages are cut")
	require.Equal(t, "ProviderSelected lca-a-t0-1-2: attempt 2 of instance a-t0-1 requests capacity from provider turin",
		shown.all()[1])
}

// Select records an attempt as failed only if the view has an attempt and the failure belongs to that attempt's
// provider.
func TestOnlyTheLastAttemptIsRecordedAsFailed(t *testing.T) {
	failed := func(provider string) *fleet.Failure {
		return fleet.NewFailure(fleet.CodeTimeout, provider, "", "silent")
	}
	milan := &fleet.Offer{Provider: "milan"}
	for name, c := range map[string]struct {
		view  fleet.View
		shown bool
	}{
		"its provider failed":    {fleet.View{Attempt: 1, Offer: milan, Failure: failed("milan")}, true},
		"no failure":             {fleet.View{Attempt: 1, Offer: milan}, false},
		"the first is to come":   {fleet.View{Offer: milan, Failure: failed("milan")}, false},
		"no provider was chosen": {fleet.View{Attempt: 1, Failure: failed("milan")}, false},
		"another has failed it":  {fleet.View{Attempt: 1, Offer: milan, Failure: failed("turin")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			shown := &board{}
			_, err := run[activities.SelectOutput](t, (&activities.Activities{Events: shown}).Select,
				activities.SelectInput{Spec: spec, View: c.view})
			require.NoError(t, err)
			require.Equal(t, c.shown, len(shown.all()) == 1, "%v", shown.all())
		})
	}
}

// An Event is a warning when users may have to react to it.
func TestEventsForUsersAreWarnings(t *testing.T) {
	for _, r := range []activities.Reason{activities.ReasonNodeDiffers, activities.ReasonAttemptFailed,
		activities.ReasonLost, activities.ReasonDrainFailed, activities.ReasonInstanceFailed, activities.ReasonInstanceStuck,
		activities.ReasonPeeringFailed} {
		require.True(t, r.Warns(), r)
	}
	for _, r := range []activities.Reason{activities.ReasonProviderSelected, activities.ReasonJoining,
		activities.ReasonNodeReady, activities.ReasonAttemptCancelled, activities.ReasonAttemptUndone,
		activities.ReasonDraining, activities.ReasonDrained, activities.ReasonReleased, activities.ReasonPeeringEstablished,
		activities.ReasonPeeringRemoved, activities.ReasonLeftoverRemoved, activities.ReasonEndedPodRemoved} {
		require.False(t, r.Warns(), r)
	}
}
