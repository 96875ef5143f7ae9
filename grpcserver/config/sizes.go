package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/derive"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// checkSizes: a group has a shape or sizes, and these have names of their own.
func checkSizes(g fleet.GroupSpec, say say) {
	if len(g.Sizes) > 0 && len(g.Shape) > 0 {
		say("shape", "is given, and there are sizes: give one of them")
	}
	first := map[string]int{}
	for i, size := range g.Sizes {
		at := fmt.Sprintf("sizes[%d].", i)
		if j, taken := first[size.Name]; taken && size.Name != "" {
			say(at+"name", "%q is the name of sizes[%d] too: give each size its own", size.Name, j)
		} else {
			first[size.Name] = i
		}
		checkShape(size.Shape, func(path, format string, args ...any) { say(at+path, format, args...) })
		value := derive.BalanceOf(g.Labels[fleet.LabelBalance], size)
		if g.Labels[fleet.LabelBalance] != "" && len(value) > validation.LabelValueMaxLength {
			say(at+"name", "makes %q of the label %s, which is too long: shorten one of them", value, fleet.LabelBalance)
		}
	}
}

// checkIDs refuses sizes whose groups have the id of another entry's. Groups with per are told from each other by more,
// so they clash only among themselves.
func checkIDs(cfg Config, say say) {
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
		for n, derived := range derive.Sizes(g) {
			at := place{i, fmt.Sprintf("nodeGroups[%d].id", i)}
			if len(g.Sizes) > 0 {
				at.path = fmt.Sprintf("nodeGroups[%d].sizes[%d].name", i, n)
			}
			k := key{derived.ID, derive.IsDerived(g)}
			other, taken := first[k]
			if !taken {
				first[k] = at
			} else if cfg.NodeGroups[other.entry].ID != g.ID { // else the entries or the names are equal, which is said
				say(at.path, "makes the node group %q, as %s does: rename one of them", derived.ID, other.path)
			}
		}
	}
}
