package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

// Times of the comparison: its schedule, and how long one round may take.
const (
	CompareEvery = time.Minute
	CompareBound = 55 * time.Second
	// roundAge is how old the round before may be: two rounds in a row are judged together.
	roundAge = 3 * time.Minute
)

// Compare is one round of the comparison of what exists with what is booked, for all groups and providers of a hub, and
// a look at each provider with holds; the schedule "compare" starts it every minute. It signals only entities that
// differ, now or in the round before. When instances are lost before the next minute, another round follows in time.
func Compare(ctx workflow.Context) (activities.Round, error) {
	var last activities.Round
	if workflow.GetLastCompletionResult(ctx, &last) != nil { // there is none
		last = activities.Round{}
	}
	if workflow.GetLastError(ctx) != nil {
		last.Began = time.Time{}
	}
	until := workflow.Now(ctx).Add(CompareBound - time.Second)
	out, err := compare(ctx, last, until)
	if err != nil || out.Due.IsZero() || workflow.Sleep(ctx, out.Due.Sub(workflow.Now(ctx))) != nil {
		return out, err
	}
	if again, err := compare(ctx, out, until); err == nil {
		return again, nil
	}
	return out, nil
}

// compare is a round after the last one, which counts if it is not long ago: else what this round shows is not the
// second time in a row. Its number is then the second in which it begins: entities take no round twice, and a schedule
// that somebody has made anew has no last one to count on from.
func compare(ctx workflow.Context, last activities.Round, until time.Time) (out activities.Round, err error) {
	now := workflow.Now(ctx)
	in := activities.Round{Number: last.Number + 1, Began: now, Differed: last.Differed, Before: &last.Outlook,
		Sweep: last.Sweep}
	if now.Sub(last.Began) > roundAge {
		in.Number = max(in.Number+1, now.Unix())
		in.Before = nil
	}
	swept := sweep(ctx, &in.Sweep, now)
	in.Outlook = observe(ctx, last.Watched)
	if swept != nil {
		_ = swept.Get(ctx, &in.Sweep) // one that fails says nothing: the next round tries again
	}
	options := list(ctx, "compare what exists with what is booked")
	left := max(until.Sub(workflow.Now(ctx)), time.Second)
	err = run(workflow.WithScheduleToCloseTimeout(options, left), activities.NameCompare, in, &out)
	return out, err
}

// sweep starts a look for what only providers have of us, when one is due; nil when none is. The first is not, so that
// what exists has been adopted by then.
func sweep(ctx workflow.Context, last *comparison.Sweep, now time.Time) workflow.Future {
	if last.At.IsZero() {
		last.At = now
	}
	if now.Sub(last.At) < comparison.SweepEvery {
		return nil
	}
	options := once(ctx, "look for what is left on providers", sweepTimeout)
	return workflow.ExecuteActivity(options, activities.NameSweep, activities.SweepInput{Last: *last, At: now})
}

// observe looks at the providers that were held, or had something wrong, in the round before, all at once.
func observe(ctx workflow.Context, providers []fleet.Provider) comparison.Outlook {
	out := comparison.Outlook{At: workflow.Now(ctx)}
	var looks []workflow.Future
	for _, p := range providers {
		options := once(ctx, "look at provider "+p.ID, lookTimeout)
		looks = append(looks, workflow.ExecuteActivity(options, activities.NameObserve, p))
	}
	var silent []string
	for n, l := range looks {
		var e comparison.Evidence
		if err := l.Get(ctx, &e); err != nil { // we could not look, which says nothing of the provider
			e = comparison.Evidence{}
		}
		e.Provider = providers[n].ID
		silent = append(silent, e.Provider)
		out.Evidence = append(out.Evidence, e)
	}
	if !out.Silent() || out.Answered() {
		return out
	}
	answers := false
	err := run(once(ctx, "look whether anybody answers", lookTimeout), activities.NameWitness, silent, &answers)
	out.Isolated = err != nil || !answers
	return out
}
