package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What a group takes from the defaults when it does not say: these fields as a whole, and of these what is missing.
var (
	inheritedWhole  = []string{"min", "max", "taints", "groupTaint", "selector"}
	inheritedByKeys = []string{"shape", "labels", "budgets"}
)

// origins tell for paths in groups from where in the defaults their content came.
type origins map[string]string

// inherit works the defaults into the groups of the tree. It works on the tree, where "not said" can be told from zero.
func inherit(tree any) origins {
	from := origins{}
	top, _ := tree.(map[string]any)
	defaults, _ := top["defaults"].(map[string]any)
	groups, _ := top["nodeGroups"].([]any)
	for i, g := range groups {
		if group, ok := g.(map[string]any); ok && len(defaults) > 0 {
			from.fill(fmt.Sprintf("nodeGroups[%d]", i), group, defaults)
		}
	}
	return from
}

func (o origins) fill(path string, group, defaults map[string]any) {
	o.take(path, "defaults", group, defaults, slices.Concat(inheritedWhole, inheritedByKeys))
	for _, name := range inheritedByKeys {
		if o[join(path, name)] != "" {
			continue // taken as a whole
		}
		own, isObject := group[name].(map[string]any)
		theirs, _ := defaults[name].(map[string]any)
		if isObject {
			o.take(join(path, name), join("defaults", name), own, theirs, slices.Sorted(maps.Keys(theirs)))
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
		o[join(path, name)] = join(theirPath, name)
	}
}

// blame moves complaints about inherited content to the defaults, where it was written, and says each once. A complaint
// that measures two fields against each other moves only when both were inherited.
func (o origins) blame(complaints []*FieldError) []*FieldError {
	type said struct{ path, message string }
	known := map[said]bool{}
	var out []*FieldError
	for _, c := range complaints {
		if theirs, ok := o.of(c.Path); ok {
			if _, both := o.of(c.follows); both || c.follows == "" {
				c.Path = theirs
			}
		}
		if s := (said{c.Path, c.Message}); !known[s] {
			known[s] = true
			out = append(out, c)
		}
	}
	return out
}

// of is the path in the defaults that the content at path came from.
func (o origins) of(path string) (string, bool) {
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") { // no inherited path is within another
		if theirs, ok := o[path[:end]]; ok {
			return theirs + path[end:], true
		}
	}
	return "", false
}
