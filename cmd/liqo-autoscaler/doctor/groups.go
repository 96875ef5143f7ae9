package doctor

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

func (r *Report) groups(in Installation) {
	if len(in.Temporal.Groups) == 0 {
		r.add("no-groups", "Temporal", "no node group runs")
	}
	for _, g := range in.Temporal.Groups {
		where := "node group " + g.Group
		switch {
		case g.Condition != "":
			r.add("group-condition", where, "%s", g.Condition)
		case g.Spec == nil:
			r.add("group-not-configured", where, "it runs but has no spec")
			continue
		}
		r.conditions(in, g, where)
		for _, i := range g.Instances {
			if i.Stuck != "" {
				r.add("group-stuck", where, "instance %s is stuck in phase %s: %s", i.Name, i.Phase, i.Stuck)
			}
		}
	}
}

// conditions adds a finding for each condition of the group that may need an action by an operator.
func (r *Report) conditions(in Installation, g fleet.Snapshot, where string) {
	var cheapest money.Money
	if in.Market != nil {
		d := choice.Choose(g.Spec.InstanceSpec, in.Market.Candidates(), nil, choice.Rank{}, in.Now)
		cheapest = choice.Cheapest(d.Assessments)
	}
	balance := g.Balance(in.Temporal.Groups, in.Temporal.Ended, in.Now)
	for _, c := range g.Conditions(balance, cheapest) {
		switch c.Name {
		case fleet.BlockPaused:
			r.add("group-paused", where, "%s", c.Message)
		case fleet.BlockSpendingLimit:
			r.add("group-spending-limit", where, "%s", c.Message)
		case fleet.BlockChangeNotInForce:
			r.add("group-change-not-in-force", where, "%s", c.Message)
		case fleet.BlockRetired:
			r.add("group-retired", where, "%s", c.Message)
		}
	}
}

func (r *Report) offers(in Installation) {
	for _, p := range in.Temporal.Providers {
		switch condition := p.Standing.Condition(); {
		case p.Refusing != nil:
			r.add("provider-condition", "provider "+p.ID, "it refuses this cluster: %s", p.Refusing.Reason)
		case condition != "":
			r.add("provider-condition", "provider "+p.ID, "%s: %s", condition, p.Standing.Message)
		}
	}
	if in.MarketNote != "" {
		r.add("no-market", "market", "%s", in.MarketNote)
	}
	if in.Market == nil {
		return
	}
	r.examined("%d offers", len(in.Market.Offers))
	in.observer(r)
	in.pods(r)
	in.volumes(r)
	in.clocks(r)
	if len(in.Market.Offers) == 0 {
		r.add("no-offers", "market", "no provider offers capacity")
		return
	}
	candidates := in.Market.Candidates()
	for _, g := range in.Temporal.Groups {
		if g.Spec == nil {
			continue
		}
		d := choice.Choose(g.Spec.InstanceSpec, candidates, nil, choice.Rank{}, in.Now)
		if d.Chosen == "" && !d.Full {
			r.add("group-without-offer", "node group "+g.Group, "no offer fits it: %s", why(d))
		}
	}
}

// why returns the reasons for which the decision rejects offers, each reason once.
func why(d choice.Decision) string {
	reasons := map[string]bool{}
	for _, v := range d.Assessments {
		if v.Reason != "" {
			reasons[v.Provider+": "+v.Reason] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(reasons)), "; ")
}

// observerBound is the maximum age of the observer's last complete round. doctor reports an older round.
const observerBound = 5 * time.Minute

// clockBound is the maximum difference between a worker's clock and another clock. doctor reports a larger
// difference.
const clockBound = 10 * time.Second

// clocks checks the clock of the leading worker.
func (in Installation) clocks(r *Report) {
	o := in.Market.Findings.Observer
	if o == nil {
		return
	}
	for _, of := range slices.Sorted(maps.Keys(o.ClockAhead)) {
		ahead := time.Duration(o.ClockAhead[of]) * time.Second
		switch {
		case ahead > clockBound:
			r.add("worker-clock", "worker", "its clock is %s ahead of the clock of %s", ahead, of)
		case -ahead > clockBound:
			r.add("worker-clock", "worker", "its clock is %s behind the clock of %s", -ahead, of)
		}
	}
}

// observer checks the age of the observer's last complete round, which the leading worker has published.
func (in Installation) observer(r *Report) {
	o := in.Market.Findings.Observer
	switch {
	case o == nil:
	case o.Paused:
		r.add("observer-paused", "observer", "an operator has paused it: lost objects are not repaired, and failed "+
			"providers are not detected")
	case in.Now.Sub(o.Complete) > observerBound:
		since := "no round has been completed since its worker started"
		if !o.Complete.IsZero() {
			since = "the last complete round was " + in.Now.Sub(o.Complete).Round(time.Second).String() + " ago"
		}
		if o.Failed != "" {
			since += ": " + o.Failed
		}
		r.add("observer-stopped", "observer", "%s; lost objects are not repaired, and failed providers are not "+
			"detected", since)
	}
}

// volumes reports the nodes that are kept because of volumes on their provider.
func (in Installation) volumes(r *Report) {
	for _, k := range in.Market.Findings.Kept {
		r.add("volumes-keep-node", "provider "+k.Provider, "node %s of node group %s is kept, and costs money, because of "+
			"the volumes of %s",
			k.Node, k.Group, k.For())
	}
}

// pods reports the pods that do not run on their virtual nodes. The leading worker has published them.
func (in Installation) pods(r *Report) {
	for _, p := range in.Market.Findings.Pods {
		if p.Overdue > 0 {
			r.add("pods-overdue", "provider "+p.Provider, "%s: %d pods of node group %s have not run since their "+
				"budgets.podStart, such as %s: %s", p.Verdict, p.Overdue, p.Group, p.Pod, p.Why)
		}
	}
}
