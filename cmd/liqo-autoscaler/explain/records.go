package explain

import (
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Record is one event of an instance, from the history of its scale-out or scale-in workflow.
type Record struct {
	At       time.Time `json:"at"`
	Workflow string    `json:"workflow"`
	// Attempt and Provider identify the attempt of the event. They are 0 and "" before the first choice of a provider.
	Attempt  int    `json:"attempt,omitempty"`
	Provider string `json:"provider,omitempty"`
	// What describes the event in a few words; Failure is set after a failure.
	What    string         `json:"what"`
	Failure *fleet.Failure `json:"failure,omitempty"`
	// Offers are the assessments of each offer. They are set if the event is a choice of a provider.
	Offers []choice.Assessment `json:"offers,omitempty"`
}

// reader reads one history. It ignores payloads that it cannot decode, because another version of the program may have
// written them.
type reader struct {
	workflow string
	attempt  int
	provider string
	steps    map[int64]string // names of activities by the id of the event that scheduled them
	records  []Record
}

// Records returns the records of one run of a scale-out or scale-in.
func Records(workflow string, events []*history.HistoryEvent) []Record {
	r := &reader{workflow: workflow, steps: map[int64]string{}}
	for _, e := range events {
		r.read(e)
	}
	return r.records
}

func (r *reader) read(e *history.HistoryEvent) {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		var in fleet.DriverInput
		if decode(e.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in) {
			r.attempt, r.provider = in.Instance.Attempt, in.Instance.Provider()
		}
		r.add(e, "started", nil)
	case enums.EVENT_TYPE_MARKER_RECORDED:
		r.chosen(e)
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		r.signal(e)
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		r.steps[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		if what := done[r.steps[e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()]]; what != "" {
			r.add(e, what, nil)
		}
	case enums.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		err := temporal.GetDefaultFailureConverter().FailureToError(a.GetFailure())
		_, f := activities.VerdictOf(err, r.provider)
		r.add(e, step(r.steps[a.GetScheduledEventId()])+" failed", f)
	case enums.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		a := e.GetActivityTaskCanceledEventAttributes()
		r.add(e, step(r.steps[a.GetScheduledEventId()])+" was cancelled", nil)
	default:
		if what := ends[e.GetEventType()]; what != "" {
			r.add(e, what, nil)
		}
	}
}

// done contains the texts of the records about completed activities, by the names of the activities.
var done = map[string]string{
	activities.NameJoin:   "the node is Ready",
	activities.NameDrain:  "the node is drained",
	activities.NameReturn: "the slice is returned",
}

// ends contains the texts of the records about events that end a run, or request its end. The keys are the types of
// the events.
var ends = map[enums.EventType]string{
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED: "an operator cancelled it",
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:        "completed",
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:           "ended before its work was finished",
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:         "was cancelled",
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:       "was terminated",
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:        "timed out",
}

// chosen adds a record for the decision of Select, which is a local activity.
func (r *reader) chosen(e *history.HistoryEvent) {
	var out activities.SelectOutput
	if !decode(e.GetMarkerRecordedEventAttributes().GetDetails()["result"], &out) || out.Decision.Considered == 0 &&
		out.Failure == nil && out.Offer == nil {
		return
	}
	if out.Offer != nil {
		r.attempt++
		r.provider = out.Offer.Provider
		r.add(e, "chose "+out.Offer.Provider, nil)
	} else {
		r.add(e, "found no provider", out.Failure)
	}
	r.records[len(r.records)-1].Offers = out.Decision.Assessments
}

func (r *reader) signal(e *history.HistoryEvent) {
	a := e.GetWorkflowExecutionSignaledEventAttributes()
	switch a.GetSignalName() {
	case workflows.SignalAnswer:
		var answer fleet.Answer
		if decode(a.GetInput(), &answer) {
			r.add(e, "the provider's workflow answered: "+string(answer.State), answer.Failure)
		}
	case workflows.SignalOrder:
		var o fleet.Order
		if decode(a.GetInput(), &o) {
			r.add(e, describeOrder(o), nil)
		}
	}
}

func describeOrder(o fleet.Order) string {
	switch {
	case o.Stop:
		return "its group stopped it"
	case o.Deleted:
		return "Cluster Autoscaler deleted the instance"
	case o.Lost:
		return "the instance was lost"
	case o.Resend > 0:
		return "its group made it request the hold again"
	}
	return "its group made it try again"
}

func step(name string) string {
	if name == activities.NameJoin {
		return "waiting for the node"
	}
	return name
}

func (r *reader) add(e *history.HistoryEvent, what string, f *fleet.Failure) {
	r.records = append(r.records, Record{At: e.GetEventTime().AsTime(), Workflow: r.workflow, Attempt: r.attempt,
		Provider: r.provider, What: what, Failure: f})
}

// decode decodes the first payload into out, and reports whether it succeeded.
func decode(from *common.Payloads, out any) bool {
	payloads := from.GetPayloads()
	return len(payloads) > 0 && converter.GetDefaultDataConverter().FromPayload(payloads[0], out) == nil
}
