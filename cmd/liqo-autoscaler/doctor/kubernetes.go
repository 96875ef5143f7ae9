package doctor

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/liqoversion"
)

var (
	oldestKubernetes = version.MustParseGeneric("1.27.0")
	policyKubernetes = version.MustParseGeneric("1.30.0")
)

// maxSkew is the maximum difference between the clocks of the API server and of this machine. doctor reports a larger
// difference, because Temporal and the offers contain times that were measured with other clocks.
const maxSkew = 30 * time.Second

func (r *Report) kubernetes(in Installation, c *cluster) {
	if v := c.version; v != nil {
		r.examined("Kubernetes %s", v)
		switch {
		case v.LessThan(oldestKubernetes):
			r.add("kubernetes-old", "Kubernetes", "its version is %s", v)
		case v.LessThan(policyKubernetes):
			r.add("kubernetes-policies", "Kubernetes", "version %s has no ValidatingAdmissionPolicies", v)
		}
	}
	if skew := in.Skew.Abs(); skew > maxSkew {
		r.add("clock-skew", "clocks", "the API server's clock and this machine's differ by %s", skew.Round(time.Second))
	}
	if len(c.groups) > 0 {
		r.liqo(in, c)
	}
	if c.offloaded == 0 {
		r.add("not-offloaded", "Namespaces", "no namespace is offloaded, so no pod can run on a virtual node")
	}
	for i := range c.peers {
		n := &c.peers[i]
		if made, ok := n.Annotations[annotationMap]; ok && strings.HasPrefix(n.Name, "liqo-tenant-") {
			r.add("tenant-namespace-mapped", "Namespace "+n.Name,
				"Liqo created it for the NamespaceMap %s, so cluster %s can read and write in it", made, n.Labels[labelPeer])
		}
	}
}

func (r *Report) liqo(in Installation, c *cluster) {
	for _, group := range []string{"core.liqo.io", "authentication.liqo.io", "offloading.liqo.io"} {
		if !slices.Contains(c.groups, group) {
			r.add("liqo-missing", "Kubernetes", "it does not have Liqo's API %s", group)
			return
		}
	}
	if c.liqo != nil {
		r.examined("Liqo %s", liqoversion.Of(c.liqo))
	}
	if slices.Contains(c.groups, "networking.liqo.io") || in.Temporal == nil {
		return
	}
	for _, p := range in.Temporal.Providers {
		if p.Offer != nil && p.Offer.Network.ModeOrDefault() != fleet.NetworkNone {
			r.add("liqo-networking", "provider "+p.ID, "its offer requires a network, but Liqo in this cluster has no "+
				"networking module")
		}
	}
}
