package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// inherited lists the fields that a group receives from the defaults when it does not set them. If a group has sizes,
// the fields in ofSizes are not copied into the group, but into each of its sizes.
var inherited, ofSizes = fieldsOf(reflect.TypeFor[Defaults]()), fieldsOf(reflect.TypeFor[Size]())

// fieldsOf returns the names that the fields of a struct have in the file. The value is true if a field is merged key
// by key, and false if it is replaced as a whole.
func fieldsOf(of reflect.Type) map[string]bool {
	byKeys := map[string]bool{}
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		byKeys[name] = f.Type.Kind() == reflect.Map || f.Type.Kind() == reflect.Struct
	}
	return byKeys
}

// origins records copied values: it maps a path in a group to the path in the defaults from which inherit copied the
// value.
type origins map[string]string

// inherit copies the defaults into the groups of the YAML tree. It does not use a struct, because a struct does not
// distinguish an absent value from a zero value.
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
	sizes, _ := group["sizes"].([]any)
	for name, byKeys := range inherited {
		if _, sized := ofSizes[name]; !sized || group["sizes"] == nil {
			o.copyValue(path, "defaults", name, group, defaults, byKeys)
			continue
		}
		for i, s := range sizes {
			if size, ok := s.(map[string]any); ok {
				o.copyValue(fmt.Sprintf("%s.sizes[%d]", path, i), "defaults", name, size, defaults, byKeys)
			}
		}
	}
}

// copyValue copies theirs[name] to own[name] if own[name] is absent. If own[name] is present and byKeys is true,
// copyValue copies only the keys that are missing in own[name].
func (o origins) copyValue(path, theirPath, name string, own, theirs map[string]any, byKeys bool) {
	path, theirPath = strictyaml.Join(path, name), strictyaml.Join(theirPath, name)
	if own[name] == nil && theirs[name] != nil {
		own[name] = theirs[name]
		o[path] = theirPath
	} else if mine, ok := own[name].(map[string]any); ok && byKeys {
		defaults, _ := theirs[name].(map[string]any)
		for key := range defaults {
			o.copyValue(path, theirPath, key, mine, defaults, false)
		}
	}
}

// relocate finds the faults in values that were copied from the defaults. It replaces the path of such a fault by the
// path in the defaults, and removes duplicates. A fault that compares two fields gets a new path only when both
// fields were copied.
func (o origins) relocate(faults strictyaml.Faults) (out strictyaml.Faults) {
	known := map[strictyaml.Fault]bool{}
	for _, f := range faults {
		_, both := o.source(f.Against)
		if theirs, ok := o.source(f.Path); ok && (both || f.Against == "") {
			f.Path, f.Against = theirs, ""
		}
		if !known[f] {
			known[f] = true
			out = append(out, f)
		}
	}
	return out
}

// source returns the path in the defaults from which the value at path was copied.
func (o origins) source(path string) (string, bool) {
	for outer := range strictyaml.Outward(path) { // no copied value contains another copied value
		if theirs, ok := o[outer]; ok {
			return theirs + path[len(outer):], true
		}
	}
	return "", false
}
