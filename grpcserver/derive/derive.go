// Package derive derives node groups from the offers. A configured group with `per` defines one group for each
// provider, or one for each value of an offer's label. If it also has `sizes`, it defines these groups once for each
// size. All nodes of a derived group have the same values of the labels by which pods select nodes. Cluster
// Autoscaler relies on this: it uses one node of a group to simulate all nodes of the group (CA
// processors/nodeinfosprovider/mixed_nodeinfos_processor.go), and after a failure it backs off from the whole group.
package derive

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// Linger is the time for which a derived group stays listed after it has lost its last offer that is large enough for
// a node. Because of this time, CA's list of groups does not change when an offer disappears for a while. During this
// time the group's max is its target size.
const Linger = 30 * time.Minute

// DefaultMax bounds the number of derived groups of a hub.
const DefaultMax = 50

// Groups derives node groups from the offers. If Max is 0, DefaultMax applies. Groups is safe for concurrent use.
type Groups struct {
	// Market returns the present offers, and false while they are not known. If Market is nil, the offers are never
	// known.
	Market func() (market.Market, bool)
	// InForce returns the specs of the running groups, and false while they cannot be read. If InForce is nil, no
	// group runs. Each call of Expand calls InForce, until InForce has returned true once. Before that, Expand
	// derives no group. Running groups have precedence over new groups, so that all replicas list the same groups,
	// also after a restart.
	InForce func() ([]fleet.GroupSpec, bool)
	Max     int
	Log     *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu       sync.Mutex
	restored bool                // InForce has returned true
	listed   map[string]*derived // by id
	refused  map[string]string   // maps ids to reasons, so that each refusal is logged once
}

// derived is a derived group that is listed, or that could be listed.
type derived struct {
	id        string
	base      string // id of the Base: of the configured group, with the size
	value     string // the provider's id, or the label's value
	labels    map[string]string
	price     float64 // price of a node divided by the weight of its shape, because shapes differ
	offeredAt time.Time
}

// Expand returns all groups that the config defines: the configured groups without `per`, and then the derived
// groups. The order of equal groups does not change.
func (g *Groups) Expand(configured []config.NodeGroup) (out []fleet.GroupSpec) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listed == nil {
		g.listed = map[string]*derived{}
	}
	now := g.now()
	offers, known := market.Market{}, false
	if g.Market != nil {
		offers, known = g.Market()
	}
	bases, fixed := map[string]config.Base{}, map[string]bool{}
	for _, group := range configured {
		for _, b := range group.Bases() {
			if b.Per.Derives() {
				bases[b.ID] = b
			} else {
				fixed[b.ID] = true
				out = append(out, b.GroupSpec)
			}
		}
	}
	g.restore(bases)
	g.removeStale(bases, fixed, known, now)
	if known && g.restored {
		g.list(wanted(bases, offers, now), fixed, now)
	}
	for _, id := range slices.Sorted(maps.Keys(g.listed)) {
		d := g.listed[id]
		out = append(out, d.spec(bases[d.base]))
	}
	return out
}

// removeStale removes derived groups whose configured group no longer exists. It also removes derived groups that
// have been without a sufficiently large offer for longer than Linger.
func (g *Groups) removeStale(bases map[string]config.Base, fixed map[string]bool, known bool, now time.Time) {
	for id, d := range g.listed {
		_, configured := bases[d.base]
		if !known { // the time during which the offers are unknown does not count towards Linger
			d.offeredAt = now
		}
		if !configured || fixed[id] || now.Sub(d.offeredAt) > Linger {
			g.log().Info("derived node group removed", "group", id, "of", d.base, "value", d.value)
			delete(g.listed, id)
		}
	}
}

// list adds groups for which offers exist, the cheapest group first, until Max groups are listed. Groups that are
// already listed stay, even if their prices change.
func (g *Groups) list(offered []*derived, fixed map[string]bool, now time.Time) {
	refused := map[string]string{}
	for _, d := range offered {
		d.offeredAt = now
		switch old := g.listed[d.id]; {
		case old != nil && old.base == d.base && old.value == d.value:
			g.listed[d.id] = d
		case old != nil:
			refused[d.id] = "its id is already used by the group derived from " + old.base + " and " + old.value +
				": give the provider, or the label value " + d.value + ", another name"
		case fixed[d.id]:
			refused[d.id] = "its id is already used by a configured node group: rename the configured group"
		case len(g.listed) >= cmp.Or(g.Max, DefaultMax):
			refused[d.id] = "the maximum number of derived node groups is reached"
		default:
			g.listed[d.id] = d
			g.log().Info("derived node group added", "group", d.id, "of", d.base, "value", d.value)
		}
	}
	for id, why := range refused {
		if g.refused[id] != why {
			g.log().Warn("node group is not derived", "group", id, "why", why)
		}
	}
	g.refused = refused
}

// Derives reports whether the group is derived and listed.
func (g *Groups) Derives(group string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listed[group] != nil
}

// Refused returns the groups that the offers define but that are not listed. The key is the group's id, and the value
// is the reason.
func (g *Groups) Refused() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.refused)
}

func (g *Groups) now() time.Time {
	if g.Now != nil {
		return g.Now()
	}
	return time.Now()
}

func (g *Groups) log() *slog.Logger { return cmp.Or(g.Log, slog.Default()) }

// minWeight is the smallest weight of a shape by which a price is divided, because the weight may be 0.
const minWeight = 1e-6

// wanted returns the groups that the offers define, each once, the cheapest first. An offer that is too small for a
// node of the base defines no group. Such a group could have no nodes, but would count towards Max.
func wanted(bases map[string]config.Base, m market.Market, now time.Time) (out []*derived) {
	candidates := m.Candidates()
	type key struct{ base, value string }
	seen := map[key]bool{}
	for _, id := range slices.Sorted(maps.Keys(bases)) {
		base := bases[id]
		for _, o := range matching(base, candidates, now) {
			value, labels, ok := valueOf(base, o)
			if ok && !seen[key{id, value}] {
				seen[key{id, value}] = true
				out = append(out, &derived{id: base.IDOf(value), base: id, value: value, labels: labels,
					price: choice.Price(base.InstanceSpec, o) / max(grpcserver.Weight(base.Shape), minWeight)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *derived) int { return cmp.Compare(a.price, b.price) })
	return out
}

// matching returns the offers from which groups of the base can be derived. If the base has a label of its
// architecture, or derives groups by a label, only offers of the base's architecture match. Otherwise offers of any
// architecture match, because a group then has the architecture of its provider's offer.
func matching(base config.Base, candidates []choice.Candidate, now time.Time) (found []fleet.Offer) {
	_, byLabel := base.Per.Label()
	if byLabel || base.Labels[corev1.LabelArchStable] != "" {
		return choice.Matching(base.InstanceSpec, candidates, now)
	}
	for _, architecture := range fleet.Architectures() {
		has := func(c choice.Candidate) bool {
			return cmp.Or(c.Offer.Architecture(), fleet.DefaultArchitecture) == architecture
		}
		if !slices.ContainsFunc(candidates, has) {
			continue
		}
		spec := base.InstanceSpec
		spec.Labels = maps.Clone(spec.Labels)
		if spec.Labels == nil {
			spec.Labels = map[string]string{}
		}
		spec.Labels[corev1.LabelArchStable] = architecture
		for _, o := range choice.Matching(spec, candidates, now) {
			if cmp.Or(o.Architecture(), fleet.DefaultArchitecture) == architecture {
				found = append(found, o)
			}
		}
	}
	return found
}

// valueOf returns the value for which the base derives the offer's group: the provider's id, or the value of the
// label in Per. It also returns the labels that all nodes of the group will have.
func valueOf(base config.Base, o fleet.Offer) (value string, labels map[string]string, ok bool) {
	labels = config.NodeLabels(o.Labels)
	key, byLabel := base.Per.Label()
	if !byLabel {
		labels[template.ProviderLabel(base.InstanceSpec)] = o.Provider
		if architecture := o.Architecture(); architecture != "" {
			labels[corev1.LabelArchStable] = architecture
		}
		return o.Provider, labels, true
	}
	value, ok = labels[key]
	return value, map[string]string{key: value}, ok
}
