package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// What a group takes from the defaults when it does not set it: these fields as a whole, and the missing keys of those.
// Where there are sizes, each of them takes the shape in place of the group.
var (
	inheritedWhole = []string{"min", "max", "taints", "groupTaint", "selector", "per", "currency", "selection",
		"standby", "nodes", "spending"}
	inheritedByKeys = []string{"shape", "labels", "budgets"}
)

// origins maps paths in groups to the paths in the defaults that their content came from.
type origins map[string]string

// inherit copies the defaults into the groups of the tree, where absent can be told from zero.
func inherit(tree map[string]any) origins {
	from := origins{}
	defaults, _ := tree["defaults"].(map[string]any)
	groups, _ := tree["nodeGroups"].([]any)
	for i, g := range groups {
		if group, ok := g.(map[string]any); ok {
			from.fill(fmt.Sprintf("nodeGroups[%d]", i), group, defaults)
		}
	}
	return from
}

func (o origins) fill(path string, group, defaults map[string]any) {
	byKeys := inheritedByKeys
	if group["sizes"] != nil {
		byKeys = slices.DeleteFunc(slices.Clone(byKeys), func(name string) bool { return name == "shape" })
		sizes, _ := group["sizes"].([]any)
		for i, s := range sizes {
			if size, ok := s.(map[string]any); ok {
				o.fillKeys(fmt.Sprintf("%s.sizes[%d]", path, i), size, defaults, []string{"shape"})
			}
		}
	}
	o.take(path, "defaults", group, defaults, inheritedWhole)
	o.fillKeys(path, group, defaults, byKeys)
}

// fillKeys copies the named values that own lacks, as a whole or by their missing keys.
func (o origins) fillKeys(path string, group, defaults map[string]any, names []string) {
	o.take(path, "defaults", group, defaults, names)
	for _, name := range names {
		if o[strictyaml.Join(path, name)] != "" {
			continue // taken as a whole
		}
		own, isObject := group[name].(map[string]any)
		theirs, _ := defaults[name].(map[string]any)
		if isObject {
			o.take(strictyaml.Join(path, name), strictyaml.Join("defaults", name), own, theirs, slices.Sorted(maps.Keys(theirs)))
		}
	}
}

// take copies the named values that own lacks.
func (o origins) take(path, theirPath string, own, theirs map[string]any, names []string) {
	for _, name := range names {
		if own[name] != nil || theirs[name] == nil {
			continue
		}
		own[name] = theirs[name]
		o[strictyaml.Join(path, name)] = strictyaml.Join(theirPath, name)
	}
}

// blame moves faults of inherited content to the defaults, where it was written, and keeps each once. A fault that
// compares two fields moves only when both were inherited.
func (o origins) blame(faults strictyaml.Faults) (out strictyaml.Faults) {
	known := map[strictyaml.Fault]bool{}
	for _, f := range faults {
		_, both := o.of(f.Against)
		if theirs, ok := o.of(f.Path); ok && (both || f.Against == "") {
			f.Path, f.Against = theirs, ""
		}
		if !known[f] {
			known[f] = true
			out = append(out, f)
		}
	}
	return out
}

// of is the path in the defaults that the content at path came from.
func (o origins) of(path string) (string, bool) {
	for outer := range strictyaml.Outward(path) { // no inherited path is within another
		if theirs, ok := o[outer]; ok {
			return theirs + path[len(outer):], true
		}
	}
	return "", false
}
