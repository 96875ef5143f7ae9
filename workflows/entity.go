package workflows

import (
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// CurrentRules is the number of the rules by which this build has new runs of entities decide. A change of what an
// entity decides raises it, and applies to runs that have at least that number: one that began with a lower one decides
// as before until it continues as new.
const CurrentRules = 1

// EntityInput starts or continues an entity.
type EntityInput struct {
	// Name is the group's or the provider's id.
	Name string `json:"name"`
	// Rules is the CurrentRules of the build that has started this run; it stays as it is until the run ends.
	Rules int `json:"rules"`
	// State is what the run before had, see fleet.Encode; nil: recover from what exists.
	State []byte `json:"state,omitempty"`
}

// NewEntity is the input of an entity that recovers from what exists.
func NewEntity(name string) EntityInput { return EntityInput{Name: name, Rules: CurrentRules} }

// core is what an entity decides by, as the loop below drives it.
type core interface {
	// receive takes every message that has come.
	receive(now time.Time)
	// step takes a result, or nil for time that has passed.
	step(result *fleet.Result, now time.Time)
	// commands are those whose results have not come.
	commands() *fleet.Commands
	// task makes a command one target of a batch; ok is false when it is no longer wanted.
	task(cmd fleet.Command) (t activities.Task, ok bool)
	// due is when step must be called although nothing happened; zero for never.
	due(now time.Time) time.Time
	// over reports whether the workflow may complete.
	over(now time.Time) bool
	// ready reports whether the snapshot may be published: what was published before holds until the recovery has ended.
	ready() bool
	// revision rises with each change of the snapshot.
	revision() int64
	// snapshot is what to publish, by memo key, and what the Temporal UI shows.
	snapshot(now time.Time) (memo map[string]any, details string)
	// state is what the next run begins with: a group's fleet.Ledger, a provider's provider.State.
	state() any
}

// entity runs a core until that is over, which a group never is: it books what comes, executes commands and publishes,
// and never waits for one result.
type entity struct {
	core
	ctx       workflow.Context
	in        EntityInput
	signals   []workflow.ReceiveChannel
	begun     Executor // of this run's first task
	woken     bool     // there is something to do
	inFlight  map[int64]bool
	results   []fleet.Result
	published int64
	alarm     alarm
	// delivering counts the batches under way.
	delivering int
	// local has batches delivered within the task that decided them: fewer events, for an entity that answers no updates.
	local bool
}

// batchMax and batchBytes bound the targets of one activity, batches how many of a kind run at once.
const (
	batchMax   = 100
	batchBytes = 256 << 10 // an eighth of what Temporal takes; a start carries its group's spec, which may be large
	batches    = 2
)

// continueAt is the history length at which entities continue as new, unless the server suggests it earlier. By default
// the server suggests it at 4,096 events.
const continueAt = 2000

// newEntity has to be the first statement of its workflow, see executor.
func newEntity(ctx workflow.Context, in EntityInput) *entity {
	return &entity{ctx: ctx, in: in, begun: executor(ctx), inFlight: map[int64]bool{}, published: -1}
}

func (e *entity) run() error {
	for {
		if wasReset(e.ctx) {
			return e.continueAsNew(nil)
		}
		now := workflow.Now(e.ctx)
		e.woken = false
		e.book(now)
		e.step(nil, now)
		e.execute(now)
		e.publish(now)
		if e.full() {
			return e.hand()
		}
		if e.over(now) && !e.pending() {
			return nil
		}
		e.alarm.arm(e.ctx, e.due(now), func() { e.woken = true })
		err := workflow.Await(e.ctx, func() bool {
			return e.woken || len(e.results) > 0 || e.pending() || e.full() || wasReset(e.ctx)
		})
		if err != nil {
			return err
		}
	}
}

// book takes what has come: first messages, then results.
func (e *entity) book(now time.Time) {
	e.receive(now)
	results := e.results
	e.results = nil
	for n := range results {
		delete(e.inFlight, results[n].ID)
		e.step(&results[n], now)
	}
}

// channel is that of a signal. What comes there wakes the loop, and is for receive to take.
func (e *entity) channel(signal string) workflow.ReceiveChannel {
	c := signalChannel(e.ctx, signal)
	e.signals = append(e.signals, c)
	return c
}

// pending reports whether messages have come that receive has not taken.
func (e *entity) pending() bool {
	return slices.ContainsFunc(e.signals, func(c workflow.ReceiveChannel) bool { return c.Len() > 0 })
}

// receiveEach takes every signal of a channel that has come.
func receiveEach[T any](c workflow.ReceiveChannel, take func(*T)) {
	for message := new(T); c.ReceiveAsync(message); message = new(T) {
		take(message)
	}
}

// receiveAll takes the rows of every signal of a channel that has come.
func receiveAll[T any](c workflow.ReceiveChannel) (all []T) {
	receiveEach(c, func(rows *[]T) { all = append(all, *rows...) })
	return all
}

// full reports whether the run is to end: its history is long, or another build of the worker has taken it over from
// the one that began it, so that no build has to replay for long what others have decided.
func (e *entity) full() bool {
	info := workflow.GetInfo(e.ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > continueAt ||
		e.begun.Build != build(e.ctx) && e.begun.Build != executor(e.ctx).Build
}

// build is that of the worker that has this task, or had it, when the task is replayed. In a new task behind replayed
// ones GetCurrentBuildID stays at the last of those (SDK 1.50, internal_task_handlers.go:1098 and 1173), and
// GetBinaryChecksum is this worker's build id (line 1169).
func build(ctx workflow.Context) string {
	if workflow.IsReplaying(ctx) {
		return workflow.GetInfo(ctx).GetCurrentBuildID()
	}
	return workflow.GetInfo(ctx).GetBinaryChecksum()
}

// hand continues as new with core's state: open commands are executed again by the next run, so nothing is waited for.
func (e *entity) hand() error {
	now := workflow.Now(e.ctx)
	for e.pending() || len(e.results) > 0 {
		e.book(now)
	}
	e.publish(now)
	state, err := fleet.Encode(e.state())
	if err != nil {
		return err
	}
	return e.continueAsNew(state)
}

// continueAsNew begins the next run; without a state it recovers from what exists.
func (e *entity) continueAsNew(state []byte) error {
	in := NewEntity(e.in.Name)
	in.State = state
	return workflow.NewContinueAsNewError(e.ctx, workflow.GetInfo(e.ctx).WorkflowType.Name, in)
}

// publish writes the snapshot to the memo, where it can be read without a worker, if it has changed.
func (e *entity) publish(now time.Time) {
	switch {
	case !e.ready():
		e.published = -1
		return
	case e.revision() == e.published:
		return
	}
	e.published = e.revision()
	memo, details := e.snapshot(now)
	var err error
	for _, key := range slices.Sorted(maps.Keys(memo)) {
		if err == nil {
			memo[key], err = memoValue(memo[key])
		}
	}
	if err == nil {
		err = workflow.UpsertMemo(e.ctx, memo)
	}
	if err != nil {
		workflow.GetLogger(e.ctx).Error("publish snapshot", "entity", e.in.Name, "error", err)
	}
	workflow.SetCurrentDetails(e.ctx, details)
}

// execute starts an activity for the commands that none is under way for: those to Temporal together, the others one
// each.
func (e *entity) execute(now time.Time) {
	batch, size := []activities.Task{}, 0
	for _, cmd := range slices.Clone(e.commands().Open) {
		delivers := activities.Delivers(cmd.Kind)
		full := delivers && (e.delivering == batches || len(batch) == batchMax || size >= batchBytes)
		if full || e.inFlight[cmd.ID] || cmd.NotBefore.After(now) {
			continue
		}
		t, ok := e.task(cmd)
		if !ok {
			e.commands().Ended(fleet.Result{ID: cmd.ID}, now)
			continue
		}
		e.inFlight[cmd.ID] = true
		if delivers {
			batch = append(batch, t)
			size += t.Size()
		} else {
			e.do(activities.NameInspect, t, []activities.Task{t}, list(e.ctx, string(cmd.Kind)+" "+e.in.Name))
		}
	}
	if len(batch) > 0 {
		e.delivering++
		e.do(activities.NameDeliver, batch, batch, short(e.ctx, activities.Summary(batch)))
	}
}

// do runs one activity next to the loop, and leaves its results there. One that fails for good is asked for again.
func (e *entity) do(name string, arg any, tasks []activities.Task, options workflow.Context) {
	workflow.Go(options, func(ctx workflow.Context) {
		var results []fleet.Result
		var err error
		if e.local && name == activities.NameDeliver {
			err = workflow.ExecuteLocalActivity(local(ctx), name, arg).Get(ctx, &results)
		} else {
			err = run(ctx, name, arg, &results)
		}
		if err != nil {
			results = nil
			for _, t := range tasks {
				results = append(results, fleet.Result{ID: t.ID, Outcome: fleet.OutcomeFailed, Error: err.Error()})
			}
		}
		if name == activities.NameDeliver {
			e.delivering--
		}
		e.results = append(e.results, results...)
	})
}
