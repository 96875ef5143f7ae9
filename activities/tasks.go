package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Task is one command of an entity in the form that an activity receives.
type Task struct {
	ID       int64             `json:"id"`
	Kind     fleet.CommandKind `json:"kind"`
	Group    string            `json:"group,omitempty"`
	Provider string            `json:"provider,omitempty"`
	// A task sets one of these fields. A recovery sets none.
	Start   *Start       `json:"start,omitempty"`
	Signal  *Signal      `json:"signal,omitempty"`
	Cancel  string       `json:"cancel,omitempty"` // a workflow's id
	Drivers []DriverName `json:"drivers,omitempty"`
	// Hold is the request for a hold that a standby peering sends to Provider. Standby requests a ranking of the
	// providers that could be kept peered.
	Hold    *fleet.HoldRequest     `json:"hold,omitempty"`
	Standby *fleet.StandbyQuestion `json:"standby,omitempty"`
	// Peer is the provider whose present refusal must be checked.
	Peer      *fleet.Provider `json:"peer,omitempty"`
	Instances []string        `json:"instances,omitempty"`
	// Save is the position of Group to save outside of Temporal.
	Save *fleet.Position `json:"save,omitempty"`
	// After is the id of a workflow that must be closed before a recovery lists objects; the time of this wait is
	// limited.
	After string `json:"after,omitempty"`
}

// Size returns the approximate size of the task in the activity's input, in bytes.
func (t Task) Size() int {
	text, _ := json.Marshal(t) // a task that cannot be encoded fails later, when the activity is scheduled
	return len(text)
}

// Start describes a workflow to start.
type Start struct {
	Type    string              `json:"type"`
	ID      string              `json:"id"`
	Queue   string              `json:"queue"`
	Summary string              `json:"summary,omitempty"`
	Driver  *fleet.DriverInput  `json:"driver,omitempty"`
	Undo    *fleet.UndoInput    `json:"undo,omitempty"`
	Peering *fleet.PeeringInput `json:"peering,omitempty"`
	// Again allows a new start after a workflow with this id has completed. Otherwise a new start is allowed only
	// after that workflow has failed.
	Again bool `json:"again,omitempty"`
	// Once refuses the start if a workflow of this id has run before, with any outcome.
	Once bool `json:"once,omitempty"`
	// Bound is the longest run time of the workflow; 0 means no limit.
	Bound time.Duration `json:"bound,omitempty"`
	// Trace is the parent span of the workflow, a W3C traceparent. If it is "", the workflow begins a new trace, if
	// tracing is enabled.
	Trace string `json:"trace,omitempty"`
	// Attributes contains the search attributes by name. Empty values are omitted.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Input returns the input of the workflow.
func (s Start) Input() any {
	switch {
	case s.Driver != nil:
		return *s.Driver
	case s.Undo != nil:
		return *s.Undo
	default:
		return s.Peering
	}
}

// Signal is a message to one workflow.
type Signal struct {
	ID     string        `json:"id"`
	Name   string        `json:"name"`
	Order  *fleet.Order  `json:"order,omitempty"`
	Answer *fleet.Answer `json:"answer,omitempty"`
}

// Payload returns the argument of the signal.
func (s Signal) Payload() any {
	if s.Order != nil {
		return s.Order
	}
	return s.Answer
}

// DriverName names the workflow of a driver.
type DriverName struct {
	Instance   string `json:"instance"`
	WorkflowID string `json:"workflowId"`
}

// Delivers reports whether Deliver executes commands of this kind. Inspect executes the other kinds.
func Delivers(kind fleet.CommandKind) bool {
	switch kind {
	case fleet.CommandDescribe, fleet.CommandInspect, fleet.CommandRecover, fleet.CommandRefusal, fleet.CommandStandby:
		return false
	case fleet.CommandStart, fleet.CommandUndo, fleet.CommandOrder, fleet.CommandAnswer, fleet.CommandPeering,
		fleet.CommandUnpeering, fleet.CommandCancel, fleet.CommandHold, fleet.CommandSave:
	}
	return true
}

// Summary describes a batch in a few words.
func Summary(batch []Task) string {
	if len(batch) > 1 {
		return fmt.Sprintf("%s and %d more", batch[0].Kind, len(batch)-1)
	}
	return string(batch[0].Kind)
}

// defaultFanOut is the default of Activities.FanOut. A small Temporal server can process this load in addition to its
// other work.
const defaultFanOut = 4

// These constants limit the time of a batch. A batch starts no command after startWithin, except the start of a
// peering. It waits for no answer after answerWithin: unfinished commands count as failed, and the entity sends them
// again. If the whole activity exceeds five seconds, the entity sends the whole batch again.
const (
	startWithin  = 3 * time.Second
	answerWithin = 4 * time.Second
)

var errNotStarted = errors.New("the batch had no time left to start this command")

// Deliver executes a batch of commands and returns one result per command. The entity sends only failed commands again.
func (a *Activities) Deliver(ctx context.Context, batch []Task) ([]fleet.Result, error) {
	results := make([]fleet.Result, len(batch))
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	turn, cancelTurn := context.WithTimeout(ctx, startWithin)
	defer cancelTurn()
	wait.ForAll(batch, a.fanOut(), func(n int, t Task) { results[n] = a.deliver(ctx, turn, t) })
	return results, nil
}

// deliver executes one command, if it can begin before the context in the parameter turn ends. Only a command that
// starts a peering may begin later. A command that starts a workflow first waits for Activities.Starting.
func (a *Activities) deliver(ctx, turn context.Context, t Task) fleet.Result {
	r := fleet.Result{ID: t.ID, Outcome: fleet.OutcomeDone}
	var err error
	switch {
	case turn.Err() != nil && (t.Start == nil || t.Start.Peering == nil):
		err = errNotStarted
	case t.Start != nil:
		var already bool
		if already, err = a.startInTurn(ctx, turn, *t.Start); already {
			r.Outcome = fleet.OutcomeAlreadyStarted
		}
	case t.Signal != nil:
		if err = a.Workflows.Signal(ctx, *t.Signal); errors.Is(err, fleet.ErrNotRunning) {
			r.Outcome, err = a.closed(ctx, t.Signal.ID)
		}
	case t.Hold != nil:
		err = a.Messages.Holds(ctx, t.Provider, *t.Hold)
	case t.Save != nil:
		err = a.savePosition(ctx, t.Group, *t.Save)
	case t.Cancel != "":
		err = a.Workflows.Cancel(ctx, t.Cancel)
	}
	if err != nil {
		r.Outcome, r.Error = fleet.OutcomeFailed, shorten.Words(err.Error(), maxError)
	}
	return r
}

// startInTurn starts a workflow after it has acquired Activities.Starting. A peering does not wait: its provider's
// workflow starts it in a local activity, and a wait would extend the workflow task.
func (a *Activities) startInTurn(ctx, turn context.Context, s Start) (already bool, err error) {
	if a.Starting != nil && s.Peering == nil {
		if err := a.Starting.Acquire(turn, 1); err != nil {
			return false, fmt.Errorf("wait for other workflows to be started: %w", err)
		}
		defer a.Starting.Release(1)
	}
	return a.start(ctx, s)
}

// start starts a workflow. If the workflow of a peering already runs, but on a version without workers, start
// replaces it. Inspect replaces drivers on such a version, because it also lists the objects that they leave.
func (a *Activities) start(ctx context.Context, s Start) (already bool, err error) {
	already, err = a.Workflows.Start(ctx, s)
	if err != nil || !already || s.Peering == nil {
		return already, err
	}
	is, err := a.status(ctx, s.ID)
	if err != nil || is.Running {
		return true, err
	}
	return a.Workflows.Start(ctx, s)
}

// closed returns the outcome for a signal whose workflow is not running.
func (a *Activities) closed(ctx context.Context, id string) (fleet.Outcome, error) {
	s, err := a.Workflows.Status(ctx, id)
	switch {
	case err != nil:
		return "", err
	case s.Running: // it was started in between
		return fleet.OutcomeFailed, nil
	case s.Completed:
		return fleet.OutcomeCompleted, nil
	default:
		return fleet.OutcomeNotRunning, nil
	}
}

const maxError = 300
