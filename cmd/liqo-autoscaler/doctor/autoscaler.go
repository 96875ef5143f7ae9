package doctor

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

var oldestAutoscaler = version.MustParseGeneric("1.30.0")

// Cluster Autoscaler's default of --max-node-provision-time, and how far above budgets.total it must be.
const (
	defaultProvision = 15 * time.Minute
	provisionMargin  = time.Minute
)

// optional are the flags that are a matter of taste, or that only some installations need.
var optional = map[string]bool{"cloud-config": true, "expander": true, "write-status-configmap": true,
	"balance-similar-node-groups": true, "balancing-label_1": true, "max-node-provision-time": true}

func (r *Report) autoscaler(in Installation, c *cluster) {
	if !c.deployments {
		return
	}
	if len(c.autoscalers) == 0 {
		r.add("autoscaler-missing", "Deployments", "none runs with --cloud-provider=externalgrpc")
	}
	for _, p := range c.autoscalers {
		r.ready(p, "autoscaler-not-ready")
		if v, err := version.ParseGeneric(p.tag()); err == nil && v.LessThan(oldestAutoscaler) {
			r.add("autoscaler-old", p.where(), "it is Cluster Autoscaler %s", v)
		}
		r.provisionTime(in, p)
		for _, f := range in.Flags(defaultProvision) {
			if _, ok := p.flag(f.Name); !ok && !optional[f.Name] {
				r.add("autoscaler-flag", p.where(), "--%s=%s is not set. %s", f.Name, f.Value, f.Why)
			}
		}
	}
}

// provisionTime compares how long Cluster Autoscaler waits for a node with how long a group may take.
func (r *Report) provisionTime(in Installation, p process) {
	waits := defaultProvision
	if text, ok := p.flag("max-node-provision-time"); ok {
		if d, err := time.ParseDuration(text); err == nil {
			waits = d
		}
	}
	if in.Temporal == nil {
		return
	}
	var hasty []string
	var longest time.Duration
	for _, g := range in.Temporal.Groups {
		if g.Spec != nil && g.Spec.Budgets.Total.Duration+provisionMargin > waits {
			hasty, longest = append(hasty, g.Group), max(longest, g.Spec.Budgets.Total.Duration)
		}
	}
	if len(hasty) > 0 {
		r.add("autoscaler-hasty", p.where(), "it gives up on a node after %s, and nodes of %s may take %s "+
			"(budgets.total): set --max-node-provision-time", waits, strings.Join(hasty, ", "), longest)
	}
}
