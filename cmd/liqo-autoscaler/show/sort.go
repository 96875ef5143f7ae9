package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natsort"
)

// byActivity is the default order of tables. Instances that are Ready and have no fault, and groups with only such
// instances, come last.
const byActivity = "activity"

// Orders are the orders that Sorted accepts.
var Orders = []string{byActivity, "name", "phase", "age", "provider", "cost"}

// CheckOrder returns an error if the order is not one of Orders.
func CheckOrder(order string) error {
	if slices.Contains(Orders, order) {
		return nil
	}
	return fmt.Errorf("--sort %q: use %s", order, strings.Join(Orders, ", "))
}

// OrderOf returns the chosen order or, without a choice, the default of the output format: the order by name for json
// and yaml, and byActivity for tables.
func OrderOf(chosen, format string) string {
	if chosen == "" && (format == "json" || format == "yaml") {
		return "name"
	}
	return cmp.Or(chosen, byActivity)
}

// Sorted returns the status in the given order. Entries that are equal in this order stay in their previous order.
// The order by age puts the oldest entry first, and the order by cost the most expensive entry.
func (s Status) Sorted(order string) Status {
	instances := map[string]func(a, b Instance) int{
		byActivity: func(a, b Instance) int { return cmp.Compare(rank(a), rank(b)) },
		// Only groups are compared, so the instances of a group stay in the order in which they were created.
		"name": func(a, b Instance) int { return natsort.Compare(a.Group, b.Group) },
		"phase": func(a, b Instance) int {
			return cmp.Compare(slices.Index(Phases, a.Shown()), slices.Index(Phases, b.Shown()))
		},
		"age":      func(a, b Instance) int { return a.Since.Compare(b.Since) },
		"provider": func(a, b Instance) int { return natsort.Compare(a.Provider, b.Provider) },
		"cost":     func(a, b Instance) int { return cmp.Compare(b.PerHour, a.PerHour) },
	}[order]
	if instances != nil {
		s.Instances = slices.Clone(s.Instances)
		slices.SortStableFunc(s.Instances, instances)
	}
	if groups := s.groupOrder(order); groups != nil {
		s.Groups = slices.Clone(s.Groups)
		slices.SortStableFunc(s.Groups, groups)
	}
	return s
}

// groupOrder returns a function that compares groups, or nil if the groups stay sorted by name.
func (s Status) groupOrder(order string) func(a, b Group) int {
	switch order {
	case byActivity, "phase":
		ranks := map[string]int{}
		for _, i := range s.Instances {
			ranks[i.Group] = min(ranks[i.Group], rank(i)-ranked)
		}
		return func(a, b Group) int { return cmp.Compare(ranks[a.Name], ranks[b.Name]) }
	case "age":
		return func(a, b Group) int { return a.Started.Compare(b.Started) }
	case "cost":
		return func(a, b Group) int { return cmp.Compare(b.perHour(), a.perHour()) }
	}
	return nil
}

// ranked is the rank of an instance that is Ready and has no fault.
const ranked = 3

// rank orders instances by their activity: instances with a fault, instances that are being created, instances that
// are being removed, and then all other instances.
func rank(i Instance) int {
	shown := i.Shown()
	switch {
	case i.Failure != nil || i.Stuck != "" || shown == NotReady:
		return 0
	case shown == "Ready":
		return ranked
	case i.Phase.Shrinking():
		return 2
	}
	return 1
}

func (g Group) perHour() float64 {
	if g.Cost == nil {
		return 0
	}
	return g.Cost.PerHour
}
