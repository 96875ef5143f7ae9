package activities_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A batch returns a result for each task, so that the entity sends only the failed tasks again.
func TestDeliverAnswersPerTarget(t *testing.T) {
	broken := errors.New("Temporal does not answer")
	f := &flows{
		status: map[string]activities.Status{
			"runs": {Running: true}, "complete": {Completed: true}, "broken": {Running: true},
		},
		fails: map[string]error{"broken": broken},
	}
	start := func(id string) activities.Task { return activities.Task{Start: &activities.Start{ID: id}} }
	signal := func(id string) activities.Task { return activities.Task{Signal: &activities.Signal{ID: id}} }
	cancel := func(id string) activities.Task { return activities.Task{Cancel: id} }
	cases := []struct {
		task activities.Task
		want fleet.Outcome
	}{
		{start("new"), fleet.OutcomeDone}, {start("runs"), fleet.OutcomeAlreadyStarted}, {start("complete"),
			fleet.OutcomeAlreadyStarted},
		{start("broken"), fleet.OutcomeFailed},
		{signal("runs"), fleet.OutcomeDone}, {signal("failed"), fleet.OutcomeNotRunning}, {signal("complete"),
			fleet.OutcomeCompleted},
		{signal("broken"), fleet.OutcomeFailed},
		{cancel("runs"), fleet.OutcomeDone}, {cancel("failed"), fleet.OutcomeDone}, {cancel("broken"), fleet.OutcomeFailed},
	}
	var batch []activities.Task
	for n, c := range cases {
		c.task.ID = int64(n + 1)
		batch = append(batch, c.task)
	}
	results, err := run[[]fleet.Result](t, (&activities.Activities{Workflows: f}).Deliver, batch)
	require.NoError(t, err)
	require.Len(t, results, len(cases))
	for n, c := range cases {
		require.Equal(t, int64(n+1), results[n].ID)
		require.Equal(t, c.want, results[n].Outcome, "target %d", n)
		require.Equal(t, c.want == fleet.OutcomeFailed, results[n].Error == broken.Error(), "target %d: %s", n,
			results[n].Error)
	}
}

// A batch saves the position of its group. A failure fails only this task.
func TestDeliverSavesThePosition(t *testing.T) {
	at := fleet.Position{Epoch: "t1", Revision: 7, Booked: 3, Released: 2}
	batch := []activities.Task{{ID: 1, Kind: fleet.CommandSave, Group: "a", Save: &at}, {ID: 2, Cancel: "runs"}}
	saved := make(chan fleet.Position, 1)
	a := &activities.Activities{Workflows: &flows{}, Records: records{saved: saved}}
	results, err := run[[]fleet.Result](t, a.Deliver, batch)
	require.NoError(t, err)
	require.Equal(t, []fleet.Result{{ID: 1, Outcome: fleet.OutcomeDone}, {ID: 2, Outcome: fleet.OutcomeDone}}, results)
	require.Equal(t, at, <-saved)
	a.Records = records{err: errors.New("the API server does not answer")}
	results, err = run[[]fleet.Result](t, a.Deliver, batch)
	require.NoError(t, err)
	require.Equal(t, []fleet.Result{{ID: 1, Outcome: fleet.OutcomeFailed, Error: "the API server does not answer"},
		{ID: 2, Outcome: fleet.OutcomeDone}}, results)
}

// reborn is a workflow that is closed when it is signalled, and runs again when it is described.
type reborn struct{ flows }

func (r *reborn) Signal(ctx context.Context, s activities.Signal) error {
	err := r.flows.Signal(ctx, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = map[string]activities.Status{s.ID: {Running: true}}
	return err
}

// A driver starts between the failed signal and the description. Deliver does not report the driver as gone. The task
// fails, so that the entity sends it again.
func TestDeliverToADriverStartedMeanwhile(t *testing.T) {
	batch := []activities.Task{{ID: 1, Signal: &activities.Signal{ID: "scale-out/a-t0-1"}}}
	results, err := run[[]fleet.Result](t, (&activities.Activities{Workflows: &reborn{}}).Deliver, batch)
	require.NoError(t, err)
	require.Equal(t, fleet.OutcomeFailed, results[0].Outcome)
}

// gradual takes 0.9 s for each start and signal, and counts the concurrent starts. The workflow "dead" never accepts a
// signal.
type gradual struct {
	flows
	running, most atomic.Int64
}

func (s *gradual) Signal(ctx context.Context, to activities.Signal) error {
	if to.ID == "dead" {
		<-ctx.Done()
		return ctx.Err()
	}
	<-time.After(900 * time.Millisecond)
	return s.flows.Signal(ctx, to)
}

func (s *gradual) Start(ctx context.Context, w activities.Start) (bool, error) {
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	defer s.running.Add(-1)
	<-time.After(900 * time.Millisecond)
	return s.flows.Start(ctx, w)
}

// All batches of a worker together start only a bounded number of workflows concurrently. A batch that waits too long
// still returns a result for each workflow that it has started, so that the entity does not start these workflows
// again.
func TestConcurrentStartsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &gradual{}
		a := &activities.Activities{Workflows: f, Starting: semaphore.NewWeighted(2)}
		began, open := time.Now(), 0
		answers := make(chan []fleet.Result)
		for n := range 3 {
			var batch []activities.Task
			for i := range 4 {
				id := int64(10*n + i)
				batch = append(batch, activities.Task{ID: id, Start: &activities.Start{ID: strconv.FormatInt(id, 10)}})
			}
			go func() {
				results, err := a.Deliver(t.Context(), batch)
				assert.NoError(t, err)
				answers <- results
			}()
		}
		peering := []activities.Task{{Start: &activities.Start{ID: "peering", Peering: &fleet.PeeringInput{}}}}
		results, err := a.Deliver(t.Context(), peering)
		require.NoError(t, err)
		require.Equal(t, fleet.OutcomeDone, results[0].Outcome)
		require.Equal(t, 900*time.Millisecond, time.Since(began), "a peering does not wait for other starts")
		for range 3 {
			for _, r := range <-answers {
				if r.Outcome != fleet.OutcomeDone {
					require.Equal(t, fleet.OutcomeFailed, r.Outcome)
					require.ErrorContains(t, errors.New(r.Error), "wait for other workflows to be started")
					open++
				}
			}
		}
		require.LessOrEqual(t, time.Since(began), 4*time.Second)
		require.EqualValues(t, 2+1, f.most.Load())
		require.Equal(t, 12-2*4, open, "two began after 0, 0.9, 1.8 and 2.7 s")
	})
}

// Temporal is slow. A batch still returns in time, with results for the tasks that it has done. Otherwise its entity
// would repeat the whole batch again and again. A target that does not answer delays no other target, and no start of
// a peering.
func TestSlowBatchReturnsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &gradual{flows: flows{status: map[string]activities.Status{"runs": {Running: true}}}}
		batch := []activities.Task{{Signal: &activities.Signal{ID: "dead"}}}
		for range 40 {
			batch = append(batch, activities.Task{Signal: &activities.Signal{ID: "runs"}})
		}
		batch = append(batch, activities.Task{Start: &activities.Start{ID: "peering", Peering: &fleet.PeeringInput{}}})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		results, err := (&activities.Activities{Workflows: f}).Deliver(ctx, batch)
		require.NoError(t, err)
		require.NoError(t, ctx.Err())
		done := 0
		for _, r := range results {
			if r.Outcome == fleet.OutcomeDone {
				done++
			} else {
				require.Equal(t, fleet.OutcomeFailed, r.Outcome)
				require.NotEmpty(t, r.Error)
			}
		}
		require.Equal(t, fleet.OutcomeDone, results[len(batch)-1].Outcome, "the peering")
		require.Equal(t, 3*4+1, done, "three begin at 0, 0.9, 1.8 and 2.7 s")
	})
}

func TestPayloadsOfSignalsAndStarts(t *testing.T) {
	order, answer := &fleet.Order{Stop: true}, &fleet.Answer{Key: "lca-a-t0-1-1"}
	require.Equal(t, order, activities.Signal{Order: order}.Payload())
	require.Equal(t, answer, activities.Signal{Answer: answer}.Payload())
	require.Equal(t, fleet.DriverInput{Ahead: 1}, activities.Start{Driver: &fleet.DriverInput{Ahead: 1}}.Input())
	require.Equal(t, fleet.UndoInput{Attempt: attempt("a-t0-1")},
		activities.Start{Undo: &fleet.UndoInput{Attempt: attempt("a-t0-1")}}.Input())
	require.Equal(t, &fleet.PeeringInput{Run: 2}, activities.Start{Peering: &fleet.PeeringInput{Run: 2}}.Input())
	require.Equal(t, "start and 1 more", activities.Summary([]activities.Task{{Kind: fleet.CommandStart},
		{Kind: fleet.CommandUndo}}))
	require.Equal(t, "start", activities.Summary([]activities.Task{{Kind: fleet.CommandStart}}))
	require.True(t, activities.Delivers(fleet.CommandUndo))
	require.False(t, activities.Delivers(fleet.CommandDescribe))
}

// The workflow of a peering runs, but no worker can continue it. Deliver starts the peering again. It does not change
// another peering whose workflow has a worker.
func TestDeliverReplacesAnOrphanedPeering(t *testing.T) {
	f := &flows{status: map[string]activities.Status{
		"peering/milan": {Running: true, Orphaned: true}, "peering/rome": {Running: true},
	}}
	batch := []activities.Task{
		{ID: 1, Start: &activities.Start{ID: "peering/milan", Peering: &fleet.PeeringInput{}}},
		{ID: 2, Start: &activities.Start{ID: "peering/rome", Peering: &fleet.PeeringInput{}}},
	}
	results, err := run[[]fleet.Result](t, (&activities.Activities{Workflows: f}).Deliver, batch)
	require.NoError(t, err)
	require.Equal(t, fleet.OutcomeDone, results[0].Outcome)
	require.Equal(t, fleet.OutcomeAlreadyStarted, results[1].Outcome)
	require.Contains(t, f.calls, "terminate peering/milan")
	require.NotContains(t, f.calls, "terminate peering/rome")
}

// unseen wraps workflows that can be started and signalled but not described.
type unseen struct{ *flows }

func (unseen) Status(context.Context, string) (activities.Status, error) {
	return activities.Status{}, errors.New("no answer")
}

// The workflow of a peering or of a driver cannot be described. Deliver assumes no state for it: the task fails. It
// starts the peering only once.
func TestDeliverAssumesNoStateWithoutADescription(t *testing.T) {
	peering := activities.Task{Start: &activities.Start{ID: "peering/milan", Peering: &fleet.PeeringInput{}}}
	signal := activities.Task{Signal: &activities.Signal{ID: "scale-out/a-t0-1"}}
	there := map[string]activities.Status{"peering/milan": {Running: true}}
	for name, c := range map[string]struct {
		task   activities.Task
		status map[string]activities.Status
		want   fleet.Outcome
	}{
		"a new peering":           {task: peering, want: fleet.OutcomeDone},
		"a peering that is there": {task: peering, status: there, want: fleet.OutcomeFailed},
		"a driver that is closed": {task: signal, want: fleet.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flows{status: c.status}
			results, err := run[[]fleet.Result](t, (&activities.Activities{Workflows: unseen{f}}).Deliver,
				[]activities.Task{c.task})
			require.NoError(t, err)
			require.Equal(t, c.want, results[0].Outcome)
			require.Equal(t, c.want == fleet.OutcomeFailed, results[0].Error == "no answer", results[0].Error)
			require.Len(t, f.calls, 1)
		})
	}
}

// Four goroutines send the tasks of a batch of any size.
func TestFourGoroutinesSendABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &gradual{}
		var batch []activities.Task
		for n := range 12 {
			batch = append(batch, activities.Task{Start: &activities.Start{ID: strconv.Itoa(n)}})
		}
		began := time.Now()
		results, err := (&activities.Activities{Workflows: f}).Deliver(t.Context(), batch)
		require.NoError(t, err)
		require.Len(t, results, 12)
		require.EqualValues(t, 4, f.most.Load())
		require.Equal(t, 3*900*time.Millisecond, time.Since(began))
	})
}
