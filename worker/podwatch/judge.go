package podwatch

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// misjudged are the pods that would fit on nodes of some of a group's providers, and not on those of others.
func misjudged(pods []*corev1.Pod, groups []fleet.Snapshot, offers []market.Offer,
	now time.Time) (found []market.MisjudgedPod) {
	candidates := market.Market{Offers: offers}.Candidates()
	var spans []span
	for _, g := range groups {
		if g.Spec != nil {
			spans = append(spans, spanOf(*g.Spec, candidates, now))
		}
	}
	judged := 0
	for _, pod := range pods {
		selects := fit.Keys(pod)
		for _, s := range spans {
			keys := s.differing(selects)
			if len(keys) == 0 || judged >= maxJudged {
				continue
			}
			judged++
			if fits := s.fits(pod); len(fits) > 0 && len(fits) < len(s.nodes) {
				found = append(found, market.MisjudgedPod{Pod: pod.Namespace + "/" + pod.Name, Group: s.group, Labels: keys,
					Fits: fits})
			}
		}
	}
	return found
}

// span is what the nodes of a group would be on each of its providers.
type span struct {
	group     string
	template  *corev1.Node
	providers []string
	nodes     []*corev1.Node // by providers
}

func spanOf(spec fleet.GroupSpec, candidates []choice.Candidate, now time.Time) span {
	s := span{group: spec.ID, template: template.Of(spec)}
	for _, o := range choice.Matching(spec, candidates, now) {
		s.providers, s.nodes = append(s.providers, o.Provider), append(s.nodes, template.On(spec, o))
	}
	return s
}

// differing are those of the labels that are not the same on all nodes.
func (s span) differing(keys []string) (differ []string) {
	for _, key := range keys {
		if slices.ContainsFunc(s.nodes, func(n *corev1.Node) bool {
			got, there := n.Labels[key]
			first, has := s.nodes[0].Labels[key]
			return got != first || there != has
		}) {
			differ = append(differ, key)
		}
	}
	return differ
}

// fits are the providers on whose nodes the pod fits.
func (s span) fits(pod *corev1.Pod) (fits []string) {
	if len(fit.Besides(pod, s.template)) > 0 {
		return nil
	}
	for n, node := range s.nodes {
		if len(fit.Selectors(pod, node)) == 0 {
			fits = append(fits, s.providers[n])
		}
	}
	return fits
}
