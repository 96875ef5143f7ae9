package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// refuseDuplicates keeps the offers whose provider is offered once. Which of two is meant cannot be known, and serving
// one at random would move capacity to and fro, so all of them are left out, by name.
func refuseDuplicates(source string, offers []fleet.Offer) (kept []fleet.Offer, problems []Problem) {
	names := map[string][]string{}
	for _, o := range offers {
		names[o.Provider] = append(names[o.Provider], o.Name)
	}
	reported := map[string]bool{}
	for _, o := range offers {
		same := names[o.Provider]
		if len(same) == 1 {
			kept = append(kept, o)
			continue
		}
		if !reported[o.Provider] {
			reported[o.Provider] = true
			problems = append(problems, duplicate(source, o.Provider, same))
		}
	}
	return kept, problems
}

func duplicate(source, provider string, names []string) Problem {
	slices.Sort(names)
	both := "both"
	if len(names) > 2 {
		both = "all"
	}
	last := len(names) - 1
	return Problem{
		Source: source,
		Offer:  cut(strings.Join(names, ", ")),
		Message: cut(fmt.Sprintf("offers %s and %s are %s of provider %s; keep one",
			strings.Join(names[:last], ", "), names[last], both, provider)),
	}
}
