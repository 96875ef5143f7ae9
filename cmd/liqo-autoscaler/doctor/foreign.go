package doctor

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// refusing lists cloud providers of Cluster Autoscaler whose NodeGroupForNode returns an error for a Node with
// another cloud's providerID. While such a Node exists, Cluster Autoscaler scales no group (CA
// core/static_autoscaler.go up to 1.34.3; from 1.34.4 on only the scale-up fails). The value is the first version
// without this error, or nil if every version has the error. Sources: CA cloudprovider/<name>, tags 1.30.0 to 1.36.1;
// kubernetes/autoscaler#8045 for aws.
var refusing = map[string]*version.Version{
	"alicloud": nil, "cherryservers": nil, "cloudstack": nil, "equinixmetal": nil, "exoscale": nil, "linode": nil,
	"packet": nil, "tencentcloud": nil, "volcengine": nil,
	"aws": version.MustParseGeneric("1.33.0"),
}

// schemes contains prefixes of providerIDs. The value is the cloud's name in refusing. doctor uses it when it cannot
// see a cloud's Cluster Autoscaler, for example in a managed control plane.
var schemes = map[string]string{"cherryservers://": "cherryservers", "equinixmetal://": "equinixmetal",
	"exoscale://": "exoscale", "linode://": "linode", "qcloud://": "tencentcloud"}

// These are defaults of Cluster Autoscaler's flags (CA config/flags/flags.go). Cluster Autoscaler stops scaling while
// the number of unready Nodes exceeds both values.
const (
	defaultUnready        = 3
	defaultUnreadyPercent = 45
)

// otherAutoscalers reports the effects of virtual nodes on a Cluster Autoscaler that runs for another cloud provider in
// this cluster.
func (r *Report) otherAutoscalers(c *cluster) {
	seen := map[string]bool{}
	for _, p := range c.foreign {
		provider, _ := p.flag("cloud-provider")
		seen[provider] = true
		r.refusesIDs(p, provider)
		r.stopsWithUs(p, c)
	}
	nodes := map[string]int{}
	for scheme, n := range c.schemes {
		if provider := schemes[scheme]; provider != "" && !seen[provider] {
			nodes[provider] += n
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(nodes)) {
		r.add("autoscaler-refuses-ids", "Nodes of "+provider, "%d Nodes belong to this cloud; its Cluster Autoscaler, if "+
			"one runs, fails for each virtual node and scales no group", nodes[provider])
	}
}

func (r *Report) refusesIDs(p process, provider string) {
	from, known := refusing[provider]
	if !known {
		return
	}
	if v, err := version.ParseGeneric(p.tag()); from != nil && err == nil && !v.LessThan(from) {
		return
	}
	r.add("autoscaler-refuses-ids", p.where(), "its provider %s returns an error for the providerID of a virtual "+
		"node, so it scales no group", provider)
}

// StopsScaling reports whether a Cluster Autoscaler stops scaling all groups because too many Nodes are not Ready.
// The parameter dead is the number of Nodes that are not Ready, and all is the number of all Nodes of the cluster.
// The parameters most and percent are the values of the flags ok-total-unready-count and max-total-unready-percentage
// (CA clusterstate/clusterstate.go, IsClusterHealthy).
func StopsScaling(dead, all int, most, percent float64) bool {
	return float64(dead) > most && float64(dead) > percent*float64(all)/100
}

// stopsWithUs adds a finding if the other cloud's Cluster Autoscaler would stop scaling when no virtual node is
// Ready, for example after the failure of a provider.
func (r *Report) stopsWithUs(p process, c *cluster) {
	number := func(flag string, otherwise float64) float64 {
		text, _ := p.flag(flag)
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
		return otherwise
	}
	most, percent := number("ok-total-unready-count", defaultUnready),
		number("max-total-unready-percentage", defaultUnreadyPercent)
	if virtual, all := len(c.nodes), len(c.nodes)+c.otherNodes; StopsScaling(virtual, all, most, percent) {
		r.add("autoscaler-stops-with-us", p.where(), "%d of %d Nodes are virtual. If their providers fail, it scales no "+
			"group (--ok-total-unready-count=%g, --max-total-unready-percentage=%g)", virtual, all, most, percent)
	}
}

// schemeOf returns the prefix of a providerID, including "://".
func schemeOf(id string) string {
	scheme, _, ok := strings.Cut(id, "://")
	if !ok {
		return ""
	}
	return scheme + "://"
}
