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

// Task is one command of an entity as an activity gets it.
type Task struct {
	ID       int64             `json:"id"`
	Kind     fleet.CommandKind `json:"kind"`
	Group    string            `json:"group,omitempty"`
	Provider string            `json:"provider,omitempty"`
	// One of these is set, but for a recovery.
	Start   *Start       `json:"start,omitempty"`
	Signal  *Signal      `json:"signal,omitempty"`
	Cancel  string       `json:"cancel,omitempty"` // a workflow's id
	Drivers []DriverName `json:"drivers,omitempty"`
	// Hold is what is told Provider of a standby's hold; Standby asks which providers to keep peered.
	Hold    *fleet.HoldRequest     `json:"hold,omitempty"`
	Standby *fleet.StandbyQuestion `json:"standby,omitempty"`
	// Peer is who is asked whether it still refuses.
	Peer      *fleet.Provider `json:"peer,omitempty"`
	Instances []string        `json:"instances,omitempty"`
	// After is a workflow that is to be closed before a recovery looks, or is waited for in vain.
	After string `json:"after,omitempty"`
}

// Size is about how many bytes of the activity's input the task is.
func (t Task) Size() int {
	text, _ := json.Marshal(t) // what cannot be written fails the activity, and says so there
	return len(text)
}

// Start is a workflow to start.
type Start struct {
	Type    string              `json:"type"`
	ID      string              `json:"id"`
	Queue   string              `json:"queue"`
	Summary string              `json:"summary,omitempty"`
	Driver  *fleet.DriverInput  `json:"driver,omitempty"`
	Undo    *fleet.UndoInput    `json:"undo,omitempty"`
	Peering *fleet.PeeringInput `json:"peering,omitempty"`
	// Again: the id may be used again after the workflow completed, and not only after it failed.
	Again bool `json:"again,omitempty"`
	// Once: no workflow of this id may have run before, however it ended.
	Once bool `json:"once,omitempty"`
	// Bound ends the workflow, if it still runs then; 0 never does.
	Bound time.Duration `json:"bound,omitempty"`
	// Trace is the span that it goes on in, a W3C traceparent; "" begins a trace, where traces are made.
	Trace string `json:"trace,omitempty"`
	// Attributes are search attributes, by name; empty ones are left out.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Input is what the workflow gets.
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

// Payload is what the signal carries.
func (s Signal) Payload() any {
	if s.Order != nil {
		return s.Order
	}
	return s.Answer
}

// DriverName is a driver's workflow.
type DriverName struct {
	Instance   string `json:"instance"`
	WorkflowID string `json:"workflowId"`
}

// Delivers reports whether a command is one of those that Deliver executes, many at once.
func Delivers(kind fleet.CommandKind) bool {
	switch kind {
	case fleet.CommandDescribe, fleet.CommandInspect, fleet.CommandRecover, fleet.CommandRefusal, fleet.CommandStandby:
		return false
	case fleet.CommandStart, fleet.CommandUndo, fleet.CommandOrder, fleet.CommandAnswer, fleet.CommandPeering,
		fleet.CommandUnpeering, fleet.CommandCancel, fleet.CommandHold:
	}
	return true
}

// Summary says in a few words what a batch does.
func Summary(batch []Task) string {
	if len(batch) > 1 {
		return fmt.Sprintf("%s and %d more", batch[0].Kind, len(batch)-1)
	}
	return string(batch[0].Kind)
}

// fanOut is how many targets of a batch are served at once: what a small Temporal bears with everything else.
const fanOut = 4

// Times of a batch, which ends after five seconds, whatever it has done by then, and then all of it is sent again: it
// begins nothing after beginFor but a peering, and waits for no answer after answerFor. What is not done by then has
// failed, and is sent again by itself.
const (
	beginFor  = 3 * time.Second
	answerFor = 4 * time.Second
)

var errNoTurn = errors.New("the commands before it took all the time of their batch")

// Deliver executes a batch of commands and answers for each one: only what failed is sent again.
func (a *Activities) Deliver(ctx context.Context, batch []Task) ([]fleet.Result, error) {
	results := make([]fleet.Result, len(batch))
	ctx, cancel := context.WithTimeout(ctx, answerFor)
	defer cancel()
	turn, over := context.WithTimeout(ctx, beginFor)
	defer over()
	wait.ForAll(batch, fanOut, func(n int, t Task) { results[n] = a.deliver(ctx, turn, t) })
	return results, nil
}

// deliver executes one command, if it has its turn before that ends; a start waits for it.
func (a *Activities) deliver(ctx, turn context.Context, t Task) fleet.Result {
	r := fleet.Result{ID: t.ID, Outcome: fleet.OutcomeDone}
	var err error
	switch {
	case turn.Err() != nil && (t.Start == nil || t.Start.Peering == nil):
		err = errNoTurn
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
	case t.Cancel != "":
		err = a.Workflows.Cancel(ctx, t.Cancel)
	}
	if err != nil {
		r.Outcome, r.Error = fleet.OutcomeFailed, shorten.Words(err.Error(), maxError)
	}
	return r
}

// startInTurn starts a workflow in its turn. A peering has none to wait for: there is one a provider, whose entity
// delivers within its task.
func (a *Activities) startInTurn(ctx, turn context.Context, s Start) (already bool, err error) {
	if a.Starting != nil && s.Peering == nil {
		if err := a.Starting.Acquire(turn, 1); err != nil {
			return false, fmt.Errorf("wait for other workflows to be started: %w", err)
		}
		defer a.Starting.Release(1)
	}
	return a.start(ctx, s)
}

// start starts a workflow. A peering that no worker may continue is replaced; drivers are by Inspect, which sees what
// they leave.
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

// closed says how a workflow ended that takes no signals.
func (a *Activities) closed(ctx context.Context, id string) (fleet.Outcome, error) {
	s, err := a.Workflows.Status(ctx, id)
	switch {
	case err != nil:
		return "", err
	case s.Running: // it was started since
		return fleet.OutcomeFailed, nil
	case s.Completed:
		return fleet.OutcomeCompleted, nil
	default:
		return fleet.OutcomeNotRunning, nil
	}
}

const maxError = 300
