package workflows

import (
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// CurrentRules is the version of the rules by which entities decide in this build. A change of the decisions increases
// this version, and applies only to runs with at least the new number. A run that started with a lower number decides
// as before until it continues as new.
const CurrentRules = 1

// EntityInput starts or continues an entity.
type EntityInput struct {
	// Name is the id of the group or the provider.
	Name string `json:"name"`
	// Rules is the CurrentRules of the build that started this run. It does not change during the run.
	Rules int `json:"rules"`
	// State is the state of the previous run, see fleet.Encode. Nil means that the entity recovers from the existing
	// objects.
	State []byte `json:"state,omitempty"`
}

// NewEntity returns the input of an entity that recovers from the existing objects.
func NewEntity(name string) EntityInput { return EntityInput{Name: name, Rules: CurrentRules} }

// core makes an entity's decisions. The loop (entity.run) calls it.
type core interface {
	// receive processes every message that has arrived.
	receive(now time.Time)
	// step processes a result, or the passing of time if result is nil.
	step(result *fleet.Result, now time.Time)
	// commands returns the commands whose results have not arrived.
	commands() *fleet.Commands
	// task translates a command into one task of a batch. ok is false when the command is no longer valid.
	task(cmd fleet.Command) (t activities.Task, ok bool)
	// due returns the time at which the loop must call step even if nothing else happens. It returns zero for never.
	due(now time.Time) time.Time
	// mayComplete reports whether the workflow may complete.
	mayComplete(now time.Time) bool
	// ready reports whether the loop may publish the snapshot. During a recovery the previously published snapshot
	// stays.
	ready() bool
	// revision increases with each change of the snapshot.
	revision() int64
	// snapshot returns the values to publish by memo key, and the text for the Temporal UI.
	snapshot(now time.Time) (memo map[string]any, details string)
	// state returns the state for the next run: a group's fleet.Ledger, a provider's provider.State.
	state() any
}

// entity runs a core until the core has ended. (The core of a group never ends.) It processes messages, executes
// commands and publishes snapshots, and never waits for a single result.
type entity struct {
	core
	ctx           workflow.Context
	in            EntityInput
	signals       []workflow.ReceiveChannel
	firstExecutor Executor // the executor of this run's first task
	woken         bool     // the loop has work to do
	inFlight      map[int64]bool
	results       []fleet.Result
	published     int64
	alarm         alarm
	// delivering counts the batches in progress.
	delivering int
	// local executes batches as local activities, within the workflow task that created them. This saves events. It is
	// used for an entity that answers no updates.
	local bool
}

// batchMax bounds the number of tasks in one batch, and batchBytes their size. batches bounds the number of concurrent
// batches.
const (
	batchMax   = 100
	batchBytes = 256 << 10 // an eighth of Temporal's limit; a start carries its group's spec, which may be large
	batches    = 2
)

// continueAt is the history length at which entities continue as new, unless the server suggests it earlier. By default
// the server suggests it at 4,096 events.
const continueAt = 2000

// newEntity must be called in the first statement of its workflow, because it calls executor.
func newEntity(ctx workflow.Context, in EntityInput) *entity {
	return &entity{ctx: ctx, in: in, firstExecutor: executor(ctx), inFlight: map[int64]bool{}, published: -1}
}

func (e *entity) run() error {
	for {
		if wasReset(e.ctx) {
			return e.continueAsNew(nil)
		}
		now := workflow.Now(e.ctx)
		e.woken = false
		e.processInbox(now)
		e.step(nil, now)
		e.execute(now)
		e.publish(now)
		if e.full() {
			return e.continueRun()
		}
		if e.mayComplete(now) && !e.pending() {
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

// processInbox processes the messages that have arrived, and then the results.
func (e *entity) processInbox(now time.Time) {
	e.receive(now)
	results := e.results
	e.results = nil
	for n := range results {
		delete(e.inFlight, results[n].ID)
		e.step(&results[n], now)
	}
}

// channel returns the channel of a signal. A new message wakes the loop, and receive processes it.
func (e *entity) channel(signal string) workflow.ReceiveChannel {
	c := signalChannel(e.ctx, signal)
	e.signals = append(e.signals, c)
	return c
}

// pending reports whether any messages have arrived that receive has not processed.
func (e *entity) pending() bool {
	return slices.ContainsFunc(e.signals, func(c workflow.ReceiveChannel) bool { return c.Len() > 0 })
}

// receiveEach calls handle for every signal in the channel, without waiting for more.
func receiveEach[T any](c workflow.ReceiveChannel, handle func(*T)) {
	for message := new(T); c.ReceiveAsync(message); message = new(T) {
		handle(message)
	}
}

// receiveAll returns the rows of every signal in the channel, without waiting for more.
func receiveAll[T any](c workflow.ReceiveChannel) (all []T) {
	receiveEach(c, func(rows *[]T) { all = append(all, *rows...) })
	return all
}

// full reports whether the run must end: its history is long, or a worker with a build other than the run's first
// build executes it. Therefore a build replays the decisions of another build only for a short time.
func (e *entity) full() bool {
	info := workflow.GetInfo(e.ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > continueAt ||
		e.firstExecutor.Build != build(e.ctx) && e.firstExecutor.Build != executor(e.ctx).Build
}

// build returns the build id of the worker that executes this task or, in a replay, has executed it. In a new task
// after a replay GetCurrentBuildID still returns the value of the last replayed task (SDK 1.50,
// internal_task_handlers.go:1098 and 1173). Therefore build calls GetBinaryChecksum if the task is not a replay. This
// method returns this worker's build id (line 1169).
func build(ctx workflow.Context) string {
	if workflow.IsReplaying(ctx) {
		return workflow.GetInfo(ctx).GetCurrentBuildID()
	}
	return workflow.GetInfo(ctx).GetBinaryChecksum()
}

// continueRun continues as new with the core's state. It does not wait for results, because the next run executes the
// open commands again.
func (e *entity) continueRun() error {
	now := workflow.Now(e.ctx)
	for e.pending() || len(e.results) > 0 {
		e.processInbox(now)
	}
	e.publish(now)
	state, err := fleet.Encode(e.state())
	if err != nil {
		return err
	}
	return e.continueAsNew(state)
}

// continueAsNew starts the next run. Without a state the next run recovers from the existing objects.
func (e *entity) continueAsNew(state []byte) error {
	in := NewEntity(e.in.Name)
	in.State = state
	return workflow.NewContinueAsNewError(e.ctx, workflow.GetInfo(e.ctx).WorkflowType.Name, in)
}

// publish writes a changed snapshot to the memo, which readers can read without a worker.
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

// execute starts activities for the commands that no running activity executes. Commands that Deliver executes share
// one activity, up to a bound. Each of the other commands has its own activity.
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

// do runs one activity concurrently with the loop, and stores its results for the loop. After a permanent failure of
// the activity, another activity executes the commands.
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
