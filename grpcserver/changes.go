package grpcserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natsort"
)

// Effect is the effect that a new config has on one node group.
type Effect string

// These constants are the effects.
const (
	EffectAdded      Effect = "Added"                             // the group starts
	EffectChanged    Effect = "Changed"                           // changed values take effect
	EffectNotInForce Effect = Effect(fleet.BlockChangeNotInForce) // changed values of the template have no effect
	EffectReplaced   Effect = "Replaced"                          // a derived group starts again when it is empty
	EffectRetired    Effect = Effect(fleet.BlockRetired)          // the group only shrinks, and then ends
)

// Change is a difference between a config and the running groups.
type Change struct {
	Group  string `json:"group"`
	Effect Effect `json:"effect"`
	// Message lists the changed values, or the action that the operator must take.
	Message string `json:"message"`
}

// Changes returns the effects that the configured specs would have on the running groups, ordered by group name. The
// function `derived` reports whether a group is derived from offers.
func Changes(running []fleet.Snapshot, configured []fleet.GroupSpec, derived func(id string) bool) (all []Change) {
	now, wanted := map[string]fleet.Snapshot{}, map[string]bool{}
	for _, s := range running {
		now[s.Group] = s
	}
	for _, spec := range configured {
		wanted[spec.ID] = true
		s, runs := now[spec.ID]
		switch {
		case !runs:
			all = append(all, Change{spec.ID, EffectAdded, fmt.Sprintf("%d to %d nodes", spec.Min, spec.Max)})
			continue
		case s.Spec == nil:
			continue // the server that started the group configures it in its next Refresh
		case changesTemplate(*s.Spec, spec, hadNodes(s)) && derived(spec.ID):
			all = append(all, Change{spec.ID, EffectReplaced, noticeReplaced})
			continue
		case changesTemplate(*s.Spec, spec, hadNodes(s)):
			all = append(all, Change{spec.ID, EffectNotInForce, advice(*s.Spec, spec)})
			spec = spec.WithTemplateOf(*s.Spec)
		}
		if what := differences(*s.Spec, spec); what != "" {
			all = append(all, Change{spec.ID, EffectChanged, what})
		} else if s.Notice.Name == fleet.BlockRetired {
			all = append(all, Change{spec.ID, EffectChanged, "the group is in the config again, and may grow again"})
		}
	}
	for _, s := range running {
		if !wanted[s.Group] {
			all = append(all, Change{s.Group, EffectRetired, fmt.Sprintf("%s; it has %d instances", noticeRetired,
				len(s.Instances))})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return natsort.Compare(a.Group, b.Group) })
	return all
}

// changesTemplate reports whether a config changes the template of a group. Such a change does not take effect while
// the group runs. The parameter `had` is false for a group that has never had nodes; changesTemplate then returns
// false.
func changesTemplate(inForce, configured fleet.GroupSpec, had bool) bool {
	return had && !inForce.SameTemplate(configured)
}

// hadNodes reports whether the group has or had instances.
func hadNodes(s fleet.Snapshot) bool { return s.Booked > 0 || len(s.Instances) > 0 }

// differences returns a text with the fields that differ, such as "max: 4 -> 6".
func differences(from, to fleet.GroupSpec) string {
	before, after := fieldsOf(from), fieldsOf(to)
	names := maps.Clone(before)
	maps.Copy(names, after)
	var what []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(before[name], after[name]) {
			what = append(what, fmt.Sprintf("%s: %s -> %s", name, valueOr(before[name]), valueOr(after[name])))
		}
	}
	return strings.Join(what, ", ")
}

func valueOr(value json.RawMessage) string {
	if value == nil {
		return "(not set)"
	}
	return string(value)
}

// fieldsOf returns the fields of a spec as JSON.
func fieldsOf(spec fleet.GroupSpec) (fields map[string]json.RawMessage) {
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil { // every part of a spec can be marshalled
		panic(fmt.Sprintf("marshal spec: %v", err))
	}
	return fields
}
