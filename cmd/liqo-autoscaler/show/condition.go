package show

import (
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Condition is a fault of a provider that the observer has found.
type Condition struct {
	Provider string    `json:"provider"`
	Name     string    `json:"name"`
	Message  string    `json:"message,omitempty"`
	Since    time.Time `json:"since"`
}

// conditionOf returns the provider's condition, or nil while the provider is healthy.
func conditionOf(p fleet.ProviderSnapshot) *Condition {
	if p.Standing.Good() {
		return nil
	}
	return &Condition{Provider: p.ID, Name: p.Standing.Condition(), Message: p.Standing.Message,
		Since: p.Standing.Since.UTC()}
}

// conditionCordoned is the condition of a provider that an operator has cordoned.
const conditionCordoned = "Cordoned"

// cordonOf returns the condition of a cordoned provider, or nil.
func cordonOf(p fleet.ProviderSnapshot) *Condition {
	if p.Cordoned.IsZero() {
		return nil
	}
	return &Condition{Provider: p.ID, Name: conditionCordoned, Since: p.Cordoned.UTC(),
		Message: "by an operator: no new nodes are created there (liqo-autoscaler uncordon provider " + p.ID + ")"}
}

// conditionPods is the condition of a provider on which a pod has waited longer than the budgets.podStart of its
// group.
const conditionPods = "PodsDoNotStart"

// conditionVolumes is the condition of a provider with a node that is kept because of volumes on the provider.
const conditionVolumes = "HoldsVolumes"

// Found adds the worker's findings. Overdue pods, and volumes because of which a node is kept, become conditions of
// their provider.
func (s Status) Found(f market.Findings) Status {
	s.Findings = f
	for _, k := range f.Kept {
		s.Conditions = append(s.Conditions, Condition{Provider: k.Provider, Name: conditionVolumes,
			Message: fmt.Sprintf("node %s of group %s is kept because of the volumes of %s", k.Node, k.Group, k.For())})
	}
	for _, p := range f.Pods {
		if p.Overdue > 0 {
			s.Conditions = append(s.Conditions, Condition{Provider: p.Provider, Name: conditionPods, Since: p.Since.UTC(),
				Message: fmt.Sprintf("%s: %d pods of group %s, such as %s: %s", p.Verdict, p.Overdue, p.Group, p.Pod, p.Why)})
		}
	}
	return s
}
