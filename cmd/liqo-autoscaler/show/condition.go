package show

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
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

// Priced adds which groups may not pay for a node of the cheapest offer. Without offers only a limit that nothing is
// left of is known to be reached.
func (s Status) Priced(snapshots []fleet.Snapshot, offers []choice.Candidate, now time.Time) Status {
	for _, snapshot := range snapshots {
		if snapshot.Spec == nil || snapshot.Spec.Spending == nil {
			continue
		}
		spec := *snapshot.Spec
		verdicts := choice.Choose(spec.InstanceSpec, offers, nil, choice.Rank{Name: spec.ID}, now).Assessments
		for n := range s.Groups {
			if s.Groups[n].Name == snapshot.Group {
				s.Groups[n].Conditions = snapshot.Conditions(choice.Cheapest(verdicts), now)
			}
		}
	}
	return s
}

// groupConditions are the rows of all groups' conditions.
func (s Status) groupConditions() (rows [][]string) {
	for _, g := range s.Groups {
		for _, c := range g.Conditions {
			rows = append(rows, []string{g.Name, c.Name, c.Message})
		}
	}
	return rows
}
