package provider

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file starts the runs of peering/<id> and unpeering/<id>. Each phase has at most one run.

// run starts the phase's workflow when the phase begins. It starts the workflow again at intervals of restartRun,
// because the workflow may have been terminated.
func (p *State) run(now time.Time) {
	kind := p.Phase.Row().Runs
	if kind == "" || p.Offer == nil || p.starting() || !p.Checked.IsZero() && now.Before(p.restart()) {
		return
	}
	p.Checked = now
	p.Commands.Add(fleet.Command{Kind: kind})
}

// starting reports whether a start of the phase's workflow is in progress.
func (p *State) starting() bool {
	return p.Commands.Has(fleet.CommandPeering, fleet.CommandUnpeering)
}

// restart returns the time at which the phase's workflow is started again, in case it was terminated.
func (p *State) restart() time.Time { return p.Checked.Add(restartRun) }

// PeeringInput returns the input for the phase's workflow.
func (p *State) PeeringInput() fleet.PeeringInput {
	budget, network := p.budgets()
	in := fleet.PeeringInput{Provider: fleet.Provider{ID: p.ID}, Run: p.Run, Budget: metav1.Duration{Duration: budget},
		NetworkBudget: metav1.Duration{Duration: network}}
	if p.Offer != nil {
		in.Provider.Credentials, in.Provider.Network = p.Offer.Credentials, p.Offer.Network
	}
	return in
}

// budgets returns the longest budgets of the waiting holds. budget excludes the work on the network. Without waiting
// holds it returns EstablishBound and NetworkBound.
func (p *State) budgets() (budget, network time.Duration) {
	for _, h := range p.Holds {
		if h.State == fleet.HoldWaiting {
			budget, network = max(budget, h.Budget), max(network, h.NetworkBudget)
		}
	}
	return cmp.Or(budget, fleet.EstablishBound), cmp.Or(network, fleet.NetworkBound)
}
