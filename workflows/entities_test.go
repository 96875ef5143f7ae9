package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

var reviewAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// edge is the hub of all workflows under test, so that each of them has to find the others within it.
const edge workflows.Hub = "edge"

// stage is a workflow under test, in time that skips, with its children and signals recorded, by their ids within the hub.
type stage struct {
	*testsuite.TestWorkflowEnvironment
	started []string                     // ids of children
	reports []workflows.Report           // signals "report" it sent
	told    []string                     // ids of those it sent "leave"
	leave   func(string) error           // what becomes of a "leave"
	child   func(workflow.Context) error // what a child does
}

func newStage(t *testing.T, run any, name string) *stage {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	s := &stage{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), leave: func(string) error { return nil }}
	s.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: edge.ID(strings.ToLower(name) + "/x")})
	within := func(id string) string {
		in, ok := strings.CutPrefix(id, edge.ID(""))
		require.True(t, ok, "%s is another hub's", id)
		return in
	}
	s.SetStartTime(reviewAt)
	s.SetTestTimeout(30 * time.Second)
	s.child = func(workflow.Context) error { return nil }
	record := func(ctx workflow.Context, _ any) error {
		s.started = append(s.started, within(workflow.GetInfo(ctx).WorkflowExecution.ID))
		return s.child(ctx)
	}
	for _, n := range []string{workflows.TypePeering, workflows.TypeUnpeering, workflows.TypeScaleOut, workflows.TypeScaleIn, workflows.TypeUndo} {
		if n != name {
			s.RegisterWorkflowWithOptions(record, workflow.RegisterOptions{Name: n})
		}
	}
	s.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	s.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, workflows.SignalReport, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			within(id)
			s.reports = append(s.reports, arg.(workflows.Report))
			return nil
		}).Maybe()
	s.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, workflows.SignalLeave, mock.Anything).Return(
		func(_, id, _, _ string, _ any) error { s.told = append(s.told, within(id)); return s.leave(within(id)) }).Maybe()
	s.RegisterActivityWithOptions(func(context.Context, string) ([]backend.Found, error) { return nil, errors.New("not now") },
		activity.RegisterOptions{Name: activities.NameRecoverGroup})
	return s
}

func (s *stage) kinds() (out []fleet.EventKind) {
	for _, r := range s.reports {
		if r.Closed {
			out = append(out, "closed")
		} else {
			out = append(out, r.Event.Kind)
		}
	}
	return out
}

func reviewSpec() fleet.GroupSpec {
	return fleet.GroupSpec{ID: "standard", Max: 1000, Shape: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}}
}

func reviewInstance(name string, phase fleet.Phase) fleet.Instance {
	i := fleet.NewInstance(name, reviewSpec(), reviewAt)
	i.Phase, i.Attempt, i.Offer = phase, 1, &fleet.Offer{Name: "milan", Provider: "milan"}
	return i
}

func removing() *fleet.ProviderState {
	p := fleet.NewProviderState("milan", reviewAt)
	p.Phase, p.Run, p.Offer = fleet.Removing, 3, &fleet.Offer{Name: "milan", Provider: "milan"}
	return &p
}

// unpeering/<id> has no bound, so the entity looks after it: one that was terminated is started again, also after a
// continue-as-new. Without that the provider stays in Removing or Compensating for ever, and refuses everybody.
func TestTerminatedUnpeeringIsStartedAgain(t *testing.T) {
	for _, phase := range []fleet.PeeringPhase{fleet.Removing, fleet.Compensating} {
		t.Run(string(phase), func(t *testing.T) {
			s := newStage(t, workflows.Provider, workflows.TypeProvider)
			state := removing()
			state.Phase = phase
			s.RegisterDelayedCallback(s.CancelWorkflow, 3*time.Minute)
			s.ExecuteWorkflow(workflows.Provider, workflows.ProviderInput{Provider: "milan", State: state})
			require.True(t, s.IsWorkflowCompleted())
			require.Contains(t, s.started, workflows.UnpeeringID("milan"))
		})
	}
}

// A report of peering/<id> that comes after the entity took it for silent does not stand for the end of the compensation.
func TestLateReportOfASilentPeeringEndsNoCompensation(t *testing.T) {
	for _, event := range []fleet.PeeringEvent{fleet.PeeringDone, fleet.PeeringFailed} {
		t.Run(string(event), func(t *testing.T) {
			s := newStage(t, workflows.Provider, workflows.TypeProvider)
			state := removing()
			state.Phase, state.Run = fleet.Establishing, 7
			s.OnRequestCancelExternalWorkflow(mock.Anything, edge.ID(workflows.PeeringID("milan")), mock.Anything).Return(func(_, _, _ string) error {
				s.SignalWorkflow(workflows.SignalReport, workflows.PeeringReport{Run: 7, Event: event})
				return nil
			})
			s.RegisterDelayedCallback(s.CancelWorkflow, 3*time.Minute)
			s.ExecuteWorkflow(workflows.Provider, workflows.ProviderInput{Provider: "milan", State: state})
			require.Contains(t, s.started, workflows.UnpeeringID("milan"))
		})
	}
}

// A scale-out that is started in place of a terminated one, for an instance that CA asked back meanwhile, does nothing.
func TestScaleOutOfALeavingInstanceEndsAtOnce(t *testing.T) {
	s := newStage(t, workflows.ScaleOut, workflows.TypeScaleOut)
	inst := reviewInstance("standard-x-1", fleet.Peering)
	inst.Leaving = true
	peered := false
	s.RegisterActivityWithOptions(func(context.Context, activities.PeerInput) error { peered = true; return errors.New("later") },
		activity.RegisterOptions{Name: activities.NamePeer})
	s.ExecuteWorkflow(workflows.ScaleOut, workflows.DriveInput{Instance: inst})
	require.True(t, s.IsWorkflowCompleted())
	require.Equal(t, []fleet.EventKind{"closed"}, s.kinds())
	require.False(t, peered)
}

// The scale-out of a leaving instance is closed, and just then another instance's report comes: the scale-in starts all the
// same, and soon.
func TestLeaveThatFindsNobodyWhileReportsCome(t *testing.T) {
	s := newStage(t, workflows.NodeGroup, workflows.TypeNodeGroup)
	leaving := reviewInstance("standard-x-1", fleet.Peering)
	leaving.Leaving = true
	other := reviewInstance("standard-x-2", fleet.Ready)
	spec := reviewSpec()
	check := reviewAt.Add(time.Hour)
	once := false
	s.leave = func(string) error {
		if once {
			return errors.New("not found")
		}
		once = true
		s.SignalWorkflow(workflows.SignalReport, workflows.Report{Instance: other.Name, From: edge.ID("scale-out/standard-x-2/r"), Number: 9, Closed: true})
		return errors.New("not found")
	}
	s.RegisterDelayedCallback(s.CancelWorkflow, 20*time.Second)
	s.ExecuteWorkflow(workflows.NodeGroup, workflows.NodeGroupInput{Group: "standard", State: &workflows.GroupState{
		Ledger: fleet.Ledger{Spec: &spec, Epoch: "x", Instances: []fleet.Instance{leaving, other}}.Pack(),
		Drivers: map[string]*workflows.Driver{
			leaving.Name: {WorkflowID: workflows.ScaleOutID(leaving.Name), Check: check},
			other.Name:   {WorkflowID: workflows.ScaleOutID(other.Name), Check: check},
		},
	}})
	require.Contains(t, s.started, workflows.ScaleInID(leaving.Name))
	require.NotContains(t, s.started, workflows.ScaleOutID(leaving.Name))
}

// A scale-out that its group knows nothing of is told to leave; another hub's is not, though its instance has the same name.
func TestReportOfAnUnknownInstanceIsAnsweredWithLeave(t *testing.T) {
	s := newStage(t, workflows.NodeGroup, workflows.TypeNodeGroup)
	spec := reviewSpec()
	s.RegisterDelayedCallback(func() {
		for name, from := range map[string]string{"standard-x-1": edge.ID("scale-out/standard-x-1/r"), "standard-x-2": "scale-out/standard-x-2/r"} {
			s.SignalWorkflow(workflows.SignalReport, workflows.Report{Instance: name, From: from, Number: 1, Event: fleet.Event{Kind: fleet.Done}})
		}
	}, time.Second)
	s.RegisterDelayedCallback(s.CancelWorkflow, 20*time.Second)
	s.ExecuteWorkflow(workflows.NodeGroup, workflows.NodeGroupInput{Group: "standard", State: &workflows.GroupState{
		Ledger: fleet.Ledger{Spec: &spec, Epoch: "x"}.Pack(),
	}})
	require.Equal(t, []string{workflows.ScaleOutID("standard-x-1")}, s.told)
}

// A group of the largest size that a spec may have must be able to continue as new and to publish: Temporal takes no
// payload above 2 MiB.
func TestLargestGroupFitsInAPayload(t *testing.T) {
	l := fleet.Ledger{Epoch: "tot1om"}
	spec := reviewSpec()
	spec.Labels = map[string]string{"node.kubernetes.io/instance-type": "edge-standard-2", "topology.kubernetes.io/region": "eu-south-1"}
	l.Spec = &spec
	drivers := map[string]*workflows.Driver{}
	for n := range spec.Max {
		i := fleet.NewInstance(fleet.InstanceName(spec.ID, l.Epoch, n+1), spec, reviewAt)
		play := func(ev fleet.Event) {
			ev.Step, ev.Attempt = i.Phase.Row().Step, i.Attempt
			_, err := i.Apply(ev, reviewAt)
			require.NoError(t, err)
		}
		play(fleet.Event{Kind: fleet.Done})
		for p := range 4 { // the fourth lap is under way: everything it may carry
			id := fmt.Sprintf("provider-%d-2f6c1f0a-6a3c-4b8f", p)
			play(fleet.Event{Kind: fleet.Done})
			play(fleet.Event{Kind: fleet.Done, Offer: &fleet.Offer{
				Name: "milan-spare", Provider: id, Epoch: "9f2c41aa01", Lendable: spec.Shape, Price: 0.5,
				Labels:      map[string]string{"country": "it", "site": "milan-2"},
				Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "liqo-autoscaler", Name: "milan-spare"}},
			}})
			play(fleet.Event{Kind: fleet.GaveUp, Failure: fleet.NewFailure(fleet.CodeTimeout, id, "tenant", strings.Repeat("the provider has not answered; ", 20))})
		}
		l.Instances = append(l.Instances, i)
		drivers[i.Name] = &workflows.Driver{WorkflowID: workflows.ScaleOutID(i.Name), From: workflows.ScaleOutID(i.Name) + "/01a1f963-5ddd-7657-b112-3959352191b2", Check: reviewAt, Number: 12}
	}
	const most = 2 << 20
	state, err := json.Marshal(workflows.NodeGroupInput{Group: spec.ID, State: &workflows.GroupState{Ledger: l.Pack(), Drivers: drivers}})
	require.NoError(t, err)
	t.Logf("%d bytes", len(state))
	require.Less(t, len(state), most, "continue-as-new input of %d instances", spec.Max)
	snapshot, err := json.Marshal(l.Snapshot(reviewAt))
	require.NoError(t, err)
	t.Logf("memo of %d instances: %d bytes", spec.Max, len(snapshot))
	require.Less(t, len(snapshot), most, "memo of %d instances", spec.Max)
}

// What a run hands to the next one is what it had.
func TestPackedLedgerIsTheLedger(t *testing.T) {
	old, young := reviewInstance("standard-x-1", fleet.Ready), reviewInstance("standard-x-2", fleet.Joining)
	young.Spec.Max = 5
	spec := reviewSpec()
	l := fleet.Ledger{Spec: &spec, Epoch: "x", NextSeq: 2, Sequence: 7, Instances: []fleet.Instance{old, young}}
	want, err := json.Marshal(l)
	require.NoError(t, err)
	wire, err := json.Marshal(l.Pack())
	require.NoError(t, err)
	var p fleet.Packed
	require.NoError(t, json.Unmarshal(wire, &p))
	got, err := json.Marshal(p.Unpack())
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
	again, err := json.Marshal(l)
	require.NoError(t, err)
	require.Equal(t, string(want), string(again), "packing leaves the ledger alone")
}
