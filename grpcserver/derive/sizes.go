package derive

import (
	"cmp"
	"maps"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// rung is a configured group, or one of its sizes.
type rung struct {
	spec  fleet.GroupSpec
	parts []string // what the ids of its groups begin with
}

// id names the group of a value.
func (r rung) id(value string) string {
	return ID(append(r.parts[:len(r.parts):len(r.parts)], value)...)
}

// Sizes are the groups that a spec stands for before the offers are looked at: itself, or one for each of its sizes.
func Sizes(s fleet.GroupSpec) (out []fleet.GroupSpec) {
	for _, r := range rungs(s) {
		out = append(out, r.spec)
	}
	return out
}

func rungs(s fleet.GroupSpec) (out []rung) {
	if len(s.Sizes) == 0 {
		return []rung{{spec: s, parts: []string{s.ID}}}
	}
	for _, size := range s.Sizes {
		r := rung{spec: s, parts: []string{s.ID, size.Name}}
		r.spec.ID, r.spec.Shape, r.spec.Sizes = ID(r.parts...), size.Shape, nil
		r.spec.PriceFactor = factor(s, size)
		if value, ok := s.Labels[fleet.LabelBalance]; ok {
			r.spec.Labels = maps.Clone(s.Labels)
			r.spec.Labels[fleet.LabelBalance] = BalanceOf(value, size)
		}
		if !IsDerived(s) {
			r.spec.Min, r.spec.MinPerGroup = s.MinPerGroup, 0
		}
		out = append(out, r)
	}
	return out
}

// BalanceOf is a size's value of the balancing label: CA splits a scale-out evenly between all groups with one value,
// whatever their nodes have room for, so only groups of one size may share it.
func BalanceOf(value string, size fleet.Size) string { return value + "-" + size.Name }

// factor is how many times an offer's price per node a node of the size costs.
func factor(s fleet.GroupSpec, size fleet.Size) float64 {
	if first := grpcserver.Weight(s.Sizes[0].Shape); size.PriceFactor == 0 && first > 0 {
		return cmp.Or(s.PriceFactor, 1) * grpcserver.Weight(size.Shape) / first
	}
	return size.PriceFactor
}
