package show

import (
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Condition is what is wrong with a provider, as the observer has found it.
type Condition struct {
	Provider string    `json:"provider"`
	Name     string    `json:"name"`
	Message  string    `json:"message,omitempty"`
	Since    time.Time `json:"since"`
}

// conditionOf is nil while all is well.
func conditionOf(p fleet.ProviderSnapshot) *Condition {
	if p.Standing.Good() {
		return nil
	}
	return &Condition{Provider: p.ID, Name: p.Standing.Condition(), Message: p.Standing.Message,
		Since: p.Standing.Since.UTC()}
}

// conditionCordoned is of providers that an operator has cordoned.
const conditionCordoned = "Cordoned"

// cordonOf is nil when nobody has cordoned the provider.
func cordonOf(p fleet.ProviderSnapshot) *Condition {
	if p.Cordoned.IsZero() {
		return nil
	}
	return &Condition{Provider: p.ID, Name: conditionCordoned, Since: p.Cordoned.UTC(),
		Message: "by an operator: nothing new is made there (liqo-autoscaler uncordon provider " + p.ID + ")"}
}

// conditionPods is of a provider on which pods have not run for the budgets.podStart of their group.
const conditionPods = "PodsDoNotStart"

// conditionVolumes is of a provider one of whose nodes stays for volumes.
const conditionVolumes = "HoldsVolumes"

// Found adds the findings of the worker. Overdue pods are a condition of their provider, and so are volumes for which a
// node stays.
func (s Status) Found(f market.Findings) Status {
	s.Findings = f
	for _, k := range f.Kept {
		s.Conditions = append(s.Conditions, Condition{Provider: k.Provider, Name: conditionVolumes,
			Message: fmt.Sprintf("node %s of group %s stays for the volumes of %s", k.Node, k.Group, k.For())})
	}
	for _, p := range f.Pods {
		if p.Overdue > 0 {
			s.Conditions = append(s.Conditions, Condition{Provider: p.Provider, Name: conditionPods, Since: p.Since.UTC(),
				Message: fmt.Sprintf("%s: %d pods of group %s, such as %s: %s", p.Verdict, p.Overdue, p.Group, p.Pod, p.Why)})
		}
	}
	return s
}
