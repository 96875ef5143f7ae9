package show

import (
	"time"

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
