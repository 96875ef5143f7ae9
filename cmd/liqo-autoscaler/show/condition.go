package show

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Condition is what is wrong with a provider, as the comparison has found it.
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

// With adds what is wrong with providers, and says it of the instances whose Node is not ready for it.
func (s Status) With(providers []fleet.ProviderSnapshot) Status {
	for _, p := range providers {
		if c := cordonOf(p); c != nil {
			s.Conditions = append(s.Conditions, *c)
		}
		c := conditionOf(p)
		if c == nil {
			continue
		}
		s.Conditions = append(s.Conditions, *c)
		for n := range s.Instances {
			if s.Instances[n].Provider == p.ID {
				s.Instances[n].Condition = c.Name
			}
		}
	}
	return s
}
