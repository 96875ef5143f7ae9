package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// Provider is the workflow that keeps one provider's holds (its reserved capacity) and the phase of its peering. It
// starts peering/<id> and unpeering/<id>, one at a time, and processes their reports. It closes after a day without
// use. The next request for a hold starts it again.
func Provider(ctx workflow.Context, in EntityInput) error {
	e := newEntity(ctx, in)
	e.local = true
	p := &providerRun{
		ctx: ctx, holds: e.channel(SignalHolds), reports: e.channel(SignalReport),
		differences: e.channel(SignalDifferences), cordons: e.channel(SignalCordon),
	}
	e.core = p
	if in.State == nil {
		p.provider = provider.New(in.Name, workflow.Now(ctx))
	} else if err := fleet.Decode(in.State, &p.provider); err != nil {
		return err
	}
	return e.run()
}

type providerRun struct {
	ctx                                  workflow.Context
	provider                             *provider.State
	holds, reports, differences, cordons workflow.ReceiveChannel
}

func (p *providerRun) receive(now time.Time) {
	receiveEach(p.cordons, func(on *bool) { p.apply(provider.Input{Cordon: on}, now) })
	if requests := receiveAll[fleet.HoldRequest](p.holds); len(requests) > 0 {
		p.apply(provider.Input{Requests: requests}, now)
	}
	receiveEach(p.reports, func(r *fleet.PeeringReport) { p.apply(provider.Input{Report: r}, now) })
	receiveEach(p.differences, func(d *fleet.Differences) { p.apply(provider.Input{Differences: d}, now) })
}

func (p *providerRun) step(r *fleet.Result, now time.Time) { p.apply(provider.Input{Result: r}, now) }

func (p *providerRun) apply(in provider.Input, now time.Time) {
	p.provider.Step(in, now)
	for _, t := range p.provider.Transitions() {
		logPeering(p.ctx, p.provider.ID, t)
	}
}

func (p *providerRun) commands() *fleet.Commands      { return &p.provider.Commands }
func (p *providerRun) due(now time.Time) time.Time    { return p.provider.Due(now) }
func (p *providerRun) mayComplete(now time.Time) bool { return p.provider.Over(now) }
func (p *providerRun) ready() bool                    { return !p.provider.Recovering }
func (p *providerRun) revision() int64                { return p.provider.Revision }
func (p *providerRun) state() any                     { return p.provider }

func (p *providerRun) snapshot(now time.Time) (map[string]any, string) {
	s := p.provider.Snapshot(now)
	return map[string]any{MemoSnapshot: s}, describeProvider(s)
}

func (p *providerRun) task(cmd fleet.Command) (activities.Task, bool) {
	t := activities.Task{ID: cmd.ID, Kind: cmd.Kind, Provider: p.provider.ID}
	switch cmd.Kind {
	case fleet.CommandAnswer:
		t.Signal = &activities.Signal{ID: inHub(p.ctx, ScaleOutID(cmd.Instance)), Name: SignalAnswer, Answer: cmd.Answer}
	case fleet.CommandPeering:
		t.Start = p.start(TypePeering, PeeringID(p.provider.ID))
		t.Start.Trace = p.provider.Trace()
	case fleet.CommandUnpeering:
		t.Start = p.start(TypeUnpeering, UnpeeringID(p.provider.ID))
	case fleet.CommandCancel:
		t.Cancel = inHub(p.ctx, UnpeeringID(p.provider.ID))
	case fleet.CommandRefusal:
		offer := p.provider.Offer
		t.Peer = &fleet.Provider{ID: p.provider.ID, Credentials: offer.Credentials, Network: offer.Network}
	case fleet.CommandRecover:
		if p.provider.Phase.Row().Runs != fleet.CommandUnpeering {
			t.After = inHub(p.ctx, UnpeeringID(p.provider.ID))
		}
	case fleet.CommandStart, fleet.CommandUndo, fleet.CommandOrder, fleet.CommandDescribe, fleet.CommandInspect,
		fleet.CommandHold, fleet.CommandStandby, fleet.CommandSave:
		return t, false
	}
	return t, true
}

// start returns the data with which an activity starts the workflow that makes or removes the peering, see
// nodeGroup.driver.
func (p *providerRun) start(workflowType, id string) *activities.Start {
	in := p.provider.PeeringInput()
	return &activities.Start{
		Type: workflowType, ID: inHub(p.ctx, id), Queue: queue(p.ctx, LaneDrivers), Peering: &in,
		Summary: workflowType + " " + in.Provider.ID, Again: true,
		Attributes: map[string]string{AttributeProvider: in.Provider.ID},
	}
}
