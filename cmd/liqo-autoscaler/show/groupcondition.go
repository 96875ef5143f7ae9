package show

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Priced adds which groups may not pay for a node of the cheapest offer. Without offers only a limit that nothing is
// left of is known to be reached.
func (s Status) Priced(snapshots []fleet.Snapshot, offers []choice.Candidate, now time.Time) Status {
	for _, snapshot := range snapshots {
		if snapshot.Spec == nil || snapshot.Spec.Spending == nil {
			continue
		}
		spec := *snapshot.Spec
		verdicts := choice.Choose(spec, offers, nil, choice.Rank{Name: spec.ID}, now).Verdicts
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
