package doctor

import (
	"cmp"
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

var (
	oldestAutoscaler = version.MustParseGeneric("1.30.0")
	// countsAsFinished is the first version of CA that treats an abandoned request for nodes as finished (see the
	// function endless).
	countsAsFinished = version.MustParseGeneric("1.36.0")
)

// defaultProvision is the default of Cluster Autoscaler's --max-node-provision-time. The flag must exceed
// budgets.total by at least provisionMargin.
const (
	defaultProvision = 15 * time.Minute
	provisionMargin  = time.Minute
)

// optional contains flags whose absence doctor does not report: only some installations need them, or another check
// covers them.
var optional = map[string]bool{"cloud-config": true, "expander": true, "write-status-configmap": true,
	"balance-similar-node-groups": true, "balancing-label_1": true, "max-node-provision-time": true}

func (r *Report) autoscaler(ctx context.Context, in Installation, c *cluster) {
	if !c.deployments {
		return
	}
	if len(c.autoscalers) == 0 {
		r.add("autoscaler-missing", "Deployments", "no Cluster Autoscaler runs with --cloud-provider=externalgrpc")
	}
	for _, p := range c.autoscalers {
		r.ready(p, "autoscaler-not-ready")
		if v, err := version.ParseGeneric(p.tag()); err == nil && v.LessThan(oldestAutoscaler) {
			r.add("autoscaler-old", p.where(), "its version is Cluster Autoscaler %s", v)
		}
		r.provisionTime(in, p)
		r.silence(ctx, in, c, p)
		for _, f := range in.Flags(defaultProvision) {
			if _, ok := p.flag(f.Name); !ok && !optional[f.Name] {
				r.add("autoscaler-flag", p.where(), "--%s=%s is not set. %s", f.Name, f.Value, f.Why)
			}
		}
	}
}

// provisionTime compares two times: how long Cluster Autoscaler waits for a node, and how long a group may need to
// create one.
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
			"(budgets.total)%s: set --max-node-provision-time", waits, strings.Join(hasty, ", "), longest, endless(p))
	}
}

// endless describes a fault of Cluster Autoscaler 1.36 and later: it requests new nodes again and again without
// backing off. It returns "" for an earlier version; an unknown version counts as 1.36. If requested nodes do not
// appear, their request should time out. But in the loop in which the request should time out, CA 1.36 no longer
// counts these nodes as upcoming, and considers the request finished (CA 1.36 clusterstate/clusterstate.go,
// getUpcomingNodesInNodeGroup and updateScaleRequests).
func endless(p process) string {
	if v, err := version.ParseGeneric(p.tag()); err == nil && v.LessThan(countsAsFinished) {
		return ""
	}
	return "; from 1.36 on it then requests nodes of the same group again and again, without backing off"
}

// These constants describe Cluster Autoscaler's status ConfigMap. CA writes it at the end of each loop in which Refresh
// succeeded (CA core/static_autoscaler.go, RunOnce; clusterstate/utils/status.go).
const (
	annotationUpdated = "cluster-autoscaler.kubernetes.io/last-updated"
	layoutUpdated     = "2006-01-02 15:04:05.999999999 -0700 MST"
	// silenceBound is the maximum age of the status. A loop usually takes ten seconds, but it takes minutes while CA
	// adds many nodes.
	silenceBound = 5 * time.Minute
)

// silence checks how long ago Cluster Autoscaler completed a loop.
func (r *Report) silence(ctx context.Context, in Installation, c *cluster, p process) {
	if writes, ok := p.flag("write-status-configmap"); ok && writes == "false" || p.workload.ready == 0 {
		return
	}
	namespace, _ := p.flag("namespace") // CA's default is kube-system, even if CA runs in another namespace
	name, _ := p.flag("status-config-map-name")
	name, namespace = cmp.Or(name, "cluster-autoscaler-status"), cmp.Or(namespace, metav1.NamespaceSystem)
	status, err := c.kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	where := "ConfigMap " + namespace + "/" + name
	if apierrors.IsNotFound(err) {
		r.add("autoscaler-silent", where, "it does not exist: no loop of Cluster Autoscaler has succeeded")
		return
	}
	if r.skipped(where, err) {
		return
	}
	text := status.Annotations[annotationUpdated]
	at, err := time.Parse(layoutUpdated, text)
	if err != nil {
		r.skipped("the time in "+where, err)
		return
	}
	if age := in.Now.Sub(at); age > silenceBound {
		r.add("autoscaler-silent", where, "the last successful loop of Cluster Autoscaler was %s ago",
			age.Round(time.Second))
	}
}
