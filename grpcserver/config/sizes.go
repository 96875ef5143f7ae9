package config

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Base is an entry of the file, or one of the entry's sizes. It contains everything that is known about the groups
// before the offers are read.
type Base struct {
	// GroupSpec is the spec of the base's group. If Per derives groups, GroupSpec is the common part of the specs of
	// these groups.
	fleet.GroupSpec
	Per   Per
	parts []string // the first parts of the ids of the base's groups, see GroupID
}

// IDOf returns the id of the base's group for a value of Per: the id of a provider, or the value of a label.
func (b Base) IDOf(value string) string {
	return GroupID(append(b.parts[:len(b.parts):len(b.parts)], value)...)
}

// Bases returns one base for each size of the entry, or a single base if the entry has no sizes.
func (g NodeGroup) Bases() (out []Base) {
	b := Base{GroupSpec: g.spec(), Per: g.Per, parts: []string{g.ID}}
	if g.Per.Derives() || len(g.Sizes) > 0 {
		b.Min = g.MinPerGroup
	}
	if len(g.Sizes) == 0 {
		return []Base{b}
	}
	for _, size := range g.Sizes {
		sized := b
		sized.parts = []string{g.ID, size.Name}
		sized.ID, sized.Shape, sized.PriceFactor = GroupID(sized.parts...), size.Shape, g.factor(size)
		if value, ok := g.Labels[fleet.LabelBalance]; ok {
			sized.Labels = maps.Clone(g.Labels)
			sized.Labels[fleet.LabelBalance] = balanceOf(value, size)
		}
		out = append(out, sized)
	}
	return out
}

// balanceOf returns the value of the balancing label for groups of a size. CA splits a scale-out evenly between all
// groups with the same value, even if their nodes differ in size. Therefore only groups of the same size may share a
// value.
func balanceOf(value string, size Size) string { return value + "-" + size.Name }

// factor returns the number by which an offer's price per node is multiplied for a node of the size.
func (g NodeGroup) factor(size Size) float64 {
	if first := grpcserver.Weight(g.Sizes[0].Shape); size.PriceFactor == 0 && first > 0 {
		return cmp.Or(g.PriceFactor, 1) * grpcserver.Weight(size.Shape) / first
	}
	return size.PriceFactor
}

// checkSizes requires that an entry sets either a shape or sizes, and that the names of the sizes are unique.
func checkSizes(g NodeGroup, say addFault) {
	switch {
	case len(g.Sizes) > 0 && len(g.Shape) > 0:
		say("shape", "is given together with sizes: remove one of them")
	case g.Sizes == nil && g.Shape == nil:
		say("shape", "is missing: %s", missingShape)
	}
	first := map[string]int{}
	for i, size := range g.Sizes {
		at := fmt.Sprintf("sizes[%d].", i)
		if j, taken := first[size.Name]; taken && size.Name != "" {
			say(at+"name", "%q is also the name of sizes[%d]: give each size its own name", size.Name, j)
		} else {
			first[size.Name] = i
		}
		checkShape(size.Shape, func(path, format string, args ...any) { say(at+path, format, args...) })
		value := balanceOf(g.Labels[fleet.LabelBalance], size)
		if g.Labels[fleet.LabelBalance] != "" && len(value) > validation.LabelValueMaxLength {
			say(at+"name", "makes the value %q of the label %s, which is too long: shorten one of them", value,
				fleet.LabelBalance)
		}
	}
}

// checkIDs adds a fault for each size whose group has the same id as a group of another entry. If an entry has per,
// the ids of its groups have one more part. Therefore these ids can conflict only with each other.
func checkIDs(cfg Config, say addFault) {
	type key struct {
		id  string
		per bool
	}
	type place struct {
		entry int
		path  string
	}
	first := map[key]place{}
	for i, g := range cfg.NodeGroups {
		for n, base := range g.Bases() {
			at := place{i, fmt.Sprintf("nodeGroups[%d].id", i)}
			if len(g.Sizes) > 0 {
				at.path = fmt.Sprintf("nodeGroups[%d].sizes[%d].name", i, n)
			}
			k := key{base.ID, g.Per.Derives()}
			other, taken := first[k]
			if !taken {
				first[k] = at
			} else if cfg.NodeGroups[other.entry].ID != g.ID { // if equal, another check reports the equal ids or names
				say(at.path, "makes the node group %q, as %s does: rename one of them", base.ID, other.path)
			}
		}
	}
}
