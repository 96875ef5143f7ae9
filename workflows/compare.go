package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
)

// Times of the comparison: its schedule, and how long one round may take.
const (
	CompareEvery = time.Minute
	CompareBound = 55 * time.Second
	// roundAge is how old the round before may be: two rounds in a row are judged together.
	roundAge = 3 * time.Minute
)

// Compare is one round of the comparison of what exists with what is booked, for all groups and providers of a hub; the
// schedule "compare" starts it every minute. It signals only entities that differ, now or in the round before.
func Compare(ctx workflow.Context) (activities.Round, error) {
	var last activities.Round
	if workflow.HasLastCompletionResult(ctx) {
		if err := workflow.GetLastCompletionResult(ctx, &last); err != nil {
			last = activities.Round{}
		}
	}
	now := workflow.Now(ctx)
	in := activities.Round{Number: last.Number + 1, Began: now, Differed: last.Differed}
	if workflow.GetLastError(ctx) != nil || now.Sub(last.Began) > roundAge {
		in.Number++ // what this round shows is not the second time in a row
	}
	var out activities.Round
	err := workflow.ExecuteActivity(list(ctx, "compare what exists with what is booked"), activities.NameCompare,
		in).Get(ctx, &out)
	return out, err
}
