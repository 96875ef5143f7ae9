package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

var rules = strictyaml.NewRules(map[string]strictyaml.Check{
	"groupid": {Valid: fleet.ValidGroupID, Fault: nameFault("group", fleet.MaxGroupID)},
	"per": {Valid: func(text string) bool { return Per(text).valid() },
		Fault: "got %q, want any, provider, or label: and the key of a label that offers have and nodes get from them: " +
			"none of kubernetes.io, node.kubernetes.io, liqo.io or liqo-autoscaler.io"},
	"sizename": {Valid: fleet.ValidGroupID, Fault: nameFault("size", fleet.MaxGroupID)},
	"hub":      {Valid: fleet.ValidHub, Fault: nameFault("hub", fleet.MaxHub)},
}, map[string]string{
	"ID":         "give the group a name, which must not change later",
	"NodeGroups": "list at least one node group",
	"Sizes":      "list at least one, or remove it",
	"Shape":      missingShape,
	"Name":       "name the size, which becomes part of the group's id",
})

const missingShape = "give the cpu, memory and pods of each node"

func nameFault(what string, limit int) string {
	return fmt.Sprintf("%%q cannot name a %s: use at most %d lower-case letters, digits and dashes, "+
		"with a letter or digit at both ends", what, limit)
}

// addFault is a function that adds a fault. path is relative to the struct that is being checked.
type addFault func(path, format string, args ...any)

// checkConfig returns the faults that struct tags cannot find.
func checkConfig(cfg Config) (faults strictyaml.Faults) {
	first := map[string]int{}
	for i, g := range cfg.NodeGroups {
		at := fmt.Sprintf("nodeGroups[%d]", i)
		if j, taken := first[g.ID]; taken && g.ID != "" {
			faults.Add(at+".id", "%q is the id of nodeGroups[%d] too: give each group its own", g.ID, j)
		} else {
			first[g.ID] = i
		}
		if a, b := cfg.NodeGroups[0].spec().CurrencyOrDefault(), g.spec().CurrencyOrDefault(); a != b {
			faults.Add(at+".currency", "is %s, but %s in nodeGroups[0]: prices of groups are compared, so set it once, "+
				"in defaults", b, a)
		}
		checkGroup(at, g, &faults)
	}
	checkIDs(cfg, faults.Add)
	checkLimits(cfg, faults.Add)
	return faults
}

// checkLimits adds a fault for each limit that is too low: all groups together could not have their min.
func checkLimits(cfg Config, say addFault) {
	var least grpcserver.Use
	for _, entry := range cfg.NodeGroups {
		for _, g := range entry.Bases() {
			if g.Min > 0 && g.Min <= g.Max && !g.Per.Derives() {
				least.Add(g.Min, g.Shape)
			}
		}
	}
	check := func(name string, limit *resource.Quantity, least resource.Quantity) {
		switch {
		case limit == nil:
		case limit.Sign() <= 0:
			say("limits."+name, "is %s: give more than 0, or leave it out", limit.String())
		case least.Cmp(*limit) > 0:
			say("limits."+name, "is %s, less than the min of all groups together (%s): raise it, or lower them",
				limit.String(), least.String())
		}
	}
	if n := cfg.Limits.Nodes; n != nil {
		check("nodes", resource.NewQuantity(int64(*n), resource.DecimalSI),
			*resource.NewQuantity(int64(least.Nodes), resource.DecimalSI))
	}
	check("cpu", cfg.Limits.CPU, least.CPU)
	check("memory", cfg.Limits.Memory, least.Memory)
}

func checkGroup(at string, g NodeGroup, faults *strictyaml.Faults) {
	say := func(path, format string, args ...any) { faults.Add(at+"."+path, format, args...) }
	checkShape(g.Shape, say)
	checkSizes(g, say)
	checkLabels(g.Labels, say)
	checkTaints(g.Taints, say)
	checkGroupTaint(g, say)
	checkSelector(g.Selector, say)
	checkPer(g, say)
	if g.Selection != nil && g.Selection.Empty() {
		say("selection", "has no weight above 0: set one, or remove it so that only the price decides")
	}
	checkSpending(g.Spending, say)
	b := g.Budgets
	if least := b.Peer.Duration + b.Network.Duration + b.Join.Duration; b.Total.Duration < least {
		*faults = append(*faults, strictyaml.Fault{Path: at + ".budgets.total", Against: at + ".budgets",
			Message: fmt.Sprintf("is %s, less than peer, network and join together (%s): raise it, or lower them",
				b.Total.Duration, least)})
	}
}

func checkSpending(s *Spending, say addFault) {
	if s == nil {
		return
	}
	if *s == (Spending{}) {
		say("spending", "has no limit: set perNode, hourly or monthly, or remove it")
	}
	compare := func(path string, l money.SpendingLimit) {
		if l.Soft != nil && l.Hard != nil && *l.Soft > *l.Hard && *l.Hard > 0 {
			say(path+".soft", "is %g, more than hard (%g), which stops the group before it warns: lower it", *l.Soft, *l.Hard)
		}
	}
	compare("spending.hourly", s.Hourly)
	compare("spending.monthly", s.Monthly)
}

// checkShape requires the resources cpu, memory and pods, because CA's simulation checks whether pods fit into these
// amounts. If a shape has no amount of the resource pods, no pod fits.
func checkShape(shape corev1.ResourceList, say addFault) {
	if shape == nil {
		return // another check reports the missing shape
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if _, ok := shape[name]; !ok {
			say(strictyaml.Join("shape", string(name)), "is missing: give the amount that each node has")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		path, quantity := strictyaml.Join("shape", string(name)), shape[name]
		switch {
		case !validResource(name):
			say(path, "is not a resource of a node: use cpu, memory, pods, ephemeral-storage, "+
				"or a full name such as nvidia.com/gpu")
		case quantity.Sign() <= 0:
			say(path, "is %s: give more than 0, or leave it out", quantity.String())
		case wholeOnly(name) && !isWhole(quantity):
			say(path, "is %s: give a whole number", quantity.String())
		case inBytes(name) && quantity.Cmp(minBytes) < 0:
			say(path, "is %s bytes: give it a unit such as Mi or Gi", quantity.String())
		}
	}
}

func validResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
		return true
	default:
		return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
			strings.Contains(string(name), "/") && len(validation.IsQualifiedName(string(name))) == 0
	}
}

// minBytes is the smallest plausible amount of a node's resource that is measured in bytes. A smaller amount means
// that the unit is missing, or that it is "m" instead of "M".
var minBytes = resource.MustParse("1Mi")

func inBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

func wholeOnly(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || strings.Contains(string(name), "/")
}

func isWhole(q resource.Quantity) bool { return q.Cmp(*resource.NewQuantity(q.Value(), q.Format)) == 0 }

func checkLabels(labels map[string]string, say addFault) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path, value := strictyaml.Join("labels", key), labels[key]
		if why := validation.IsQualifiedName(key); len(why) > 0 {
			say(path, "is not a label key: %s", short(why))
			continue
		}
		if why := reservedLabel(key, value); why != "" {
			say(path, "%s", why)
			continue
		}
		if why := validation.IsValidLabelValue(value); len(why) > 0 {
			say(path, "%q is not a label value: %s", value, short(why))
		}
	}
}

func checkTaints(taints []corev1.Taint, say addFault) {
	seen := map[string]bool{}
	for i, t := range taints {
		path := fmt.Sprintf("taints[%d].", i)
		if t.Key == "" {
			say(path+"key", "is missing: name the taint")
		} else if why := validation.IsQualifiedName(t.Key); len(why) > 0 {
			say(path+"key", "%q is not a taint key: %s", t.Key, short(why))
		} else if why := reservedTaint(t.Key); why != "" {
			say(path+"key", "%s", why)
		}
		if why := validation.IsValidLabelValue(t.Value); len(why) > 0 {
			say(path+"value", "%q is not a taint value: %s", t.Value, short(why))
		}
		if t.Effect == "" {
			say(path+"effect", "is missing: use NoSchedule, PreferNoSchedule or NoExecute")
		} else {
			checkEffect(path+"effect", t.Effect, say)
		}
		if t.TimeAdded != nil {
			say(path+"timeAdded", "is set by Kubernetes: remove it")
		}
		if id := t.Key + ":" + string(t.Effect); seen[id] {
			say(strings.TrimSuffix(path, "."), "repeats the taint %s: remove one of them", id)
		} else {
			seen[id] = true
		}
	}
}

func checkEffect(path string, effect corev1.TaintEffect, say addFault) {
	switch effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		say(path, "%q is not an effect: use NoSchedule, PreferNoSchedule or NoExecute", effect)
	}
}

func checkGroupTaint(g NodeGroup, say addFault) {
	if g.GroupTaint == "" {
		return
	}
	checkEffect("groupTaint", g.GroupTaint, say)
	for i, t := range g.Taints {
		if t.Key == fleet.LabelGroup && t.Effect == g.GroupTaint {
			say(fmt.Sprintf("taints[%d]", i), "repeats the taint that groupTaint adds: remove one of them")
		}
	}
}

func checkSelector(selector *metav1.LabelSelector, say addFault) {
	if selector == nil {
		return
	}
	problems := metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{},
		field.NewPath("selector"))
	for _, p := range problems {
		say(p.Field, "%s: fix the selector, which is matched against the labels of offers", short([]string{p.ErrorBody()}))
	}
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil && len(problems) == 0 {
		say("selector", "%v: fix the selector, which is matched against the labels of offers", err)
	}
}

// checkPer adds a fault for each field that an entry must not set together with per or sizes. It also adds a fault
// for a field that needs per or sizes.
func checkPer(g NodeGroup, say addFault) {
	switch derived := g.Per.Derives(); {
	case derived && g.Min > 0:
		say("min", "is %d, but per is %s: use minPerGroup, which is the min of each derived group", g.Min, g.Per)
	case len(g.Sizes) > 0 && g.Min > 0:
		say("min", "is %d, but sizes are given: use minPerGroup, which is the min of each size's group", g.Min)
	case derived && g.Per == PerProvider && g.Provider != "":
		say("provider", "is given, but per is provider: remove one of them")
	case !derived && len(g.Sizes) == 0 && g.MinPerGroup > 0:
		say("minPerGroup", "is for derived groups: use min, or set per or sizes")
	}
}

// short shortens the messages of Kubernetes' validation: it removes the examples and the patterns.
func short(why []string) string {
	reason, _, _ := strings.Cut(why[0], " (e.g.")
	return reason
}
