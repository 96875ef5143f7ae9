package provider

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The runs of peering/<id> and unpeering/<id>, of which each phase has at most one.

// run starts the phase's workflow: on entry, and every restartRun again, in case somebody has terminated it.
func (p *State) run(now time.Time) {
	kind := p.Phase.Row().Runs
	if kind == "" || p.Offer == nil || p.starting() || !p.Checked.IsZero() && now.Before(p.restart()) {
		return
	}
	p.Checked = now
	p.Commands.Add(fleet.Command{Kind: kind})
}

// starting reports whether the phase's workflow is being started.
func (p *State) starting() bool {
	return p.Commands.Has(fleet.CommandPeering, fleet.CommandUnpeering)
}

// restart is when the phase's workflow is started once more although it should run.
func (p *State) restart() time.Time { return p.Checked.Add(restartRun) }

// PeeringInput is what the phase's workflow is started with.
func (p *State) PeeringInput() fleet.PeeringInput {
	budget, network := p.budgets()
	in := fleet.PeeringInput{Provider: fleet.Provider{ID: p.ID}, Run: p.Run, Budget: metav1.Duration{Duration: budget},
		NetworkBudget: metav1.Duration{Duration: network}}
	if p.Offer != nil {
		in.Provider.Credentials, in.Provider.Network = p.Offer.Credentials, p.Offer.Network
	}
	return in
}

// budgets are the longest ones of those that wait: of the network, and of all else.
func (p *State) budgets() (budget, network time.Duration) {
	for _, h := range p.Holds {
		if h.State == fleet.HoldWaiting {
			budget, network = max(budget, h.Budget), max(network, h.NetworkBudget)
		}
	}
	return cmp.Or(budget, fleet.EstablishBound), cmp.Or(network, fleet.NetworkBound)
}
