package burst

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// limits are our limits for our own workflows. Each is at most a quarter of the limit at which Temporal ends a run,
// fails its tasks, or delays them.
var limits = []struct {
	name, unit string
	most, per  float64
}{
	{"history", "events", 12_800, 1}, {"history-size", "KiB", 12.5 * (1 << 20), 1 << 10},
	{"payload", "KiB", 512 << 10, 1 << 10}, {"commands-of-a-task", "KiB", 1 << 20, 1 << 10},
	{"memo", "KiB", 64 << 10, 1 << 10}, {"pending-activities", "activities", 500, 1},
	{"signals-a-second", "signals", 20, 1}, {"signals-during-a-task", "signals", 100, 1},
}

// reached holds the highest use of each limit in any run, and the workflow in which it occurred.
type reached map[string]peak

type peak struct {
	value int
	in    string
}

func (r reached) at(limit string, value int, in string) {
	if value > r[limit].value {
		r[limit] = peak{value, in}
	}
}

// runOf measures one run, event by event. The limits for histories, tasks and signals apply to entities only, because
// all other workflows are short.
type runOf struct {
	kind    string
	entity  bool
	to      reached
	events  int
	size    int
	pending map[int64]bool
	task    int64 // the workflow task whose commands are added up
	issued  int
	signals []time.Time // signals in the last second
	// began and ended are the times of the last workflow task. during is the number of signals between them.
	began, ended time.Time
	during       int
}

func newRun(kind string, to reached) *runOf {
	return &runOf{kind: kind, entity: entity(kind), to: to, pending: map[int64]bool{}}
}

func (r *runOf) see(e *historypb.HistoryEvent) {
	name := strings.TrimPrefix(e.EventType.String(), "EVENT_TYPE_")
	memo := 0
	for _, p := range e.GetWorkflowPropertiesModifiedEventAttributes().GetUpsertedMemo().GetFields() {
		memo += len(p.GetData())
	}
	for _, p := range e.GetWorkflowExecutionStartedEventAttributes().GetMemo().GetFields() {
		memo += len(p.GetData())
	}
	r.to.at("memo", memo, r.kind)
	largestPayload(e.ProtoReflect(), func(n int) { r.to.at("payload", n, r.kind+"/"+name) })
	r.events, r.size = r.events+1, r.size+proto.Size(e)
	if r.entity {
		r.seeActivities(e)
		r.seeCommands(e)
		r.seeSignals(e)
	}
}

func (r *runOf) seeActivities(e *historypb.HistoryEvent) {
	switch e.EventType {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		r.pending[e.EventId] = true
		r.to.at("pending-activities", len(r.pending), r.kind)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		delete(r.pending, e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		delete(r.pending, e.GetActivityTaskFailedEventAttributes().GetScheduledEventId())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		delete(r.pending, e.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		delete(r.pending, e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId())
	}
}

// seeCommands adds up the sizes of the commands of a workflow task. The commands are the events that follow the end
// of the task and name the task.
func (r *runOf) seeCommands(e *historypb.HistoryEvent) {
	if e.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
		r.task, r.issued = e.EventId, 0
		return
	}
	of := e.ProtoReflect()
	if a := of.WhichOneof(of.Descriptor().Oneofs().ByName("attributes")); a != nil {
		m := of.Get(a).Message()
		by := m.Descriptor().Fields().ByName("workflow_task_completed_event_id")
		if by != nil && r.task != 0 && m.Get(by).Int() == r.task {
			r.issued += proto.Size(e)
			r.to.at("commands-of-a-task", r.issued, r.kind)
		}
	}
}

// seeSignals counts the signals within any second, and the signals during one task. If a signal arrives during a task,
// Temporal writes its event only after the task has ended. The event still has the time at which the signal arrived.
func (r *runOf) seeSignals(e *historypb.HistoryEvent) {
	at := e.EventTime.AsTime()
	switch e.EventType {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		r.began, r.ended, r.during = at, time.Time{}, 0
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
		r.ended = at
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		r.signals = slices.DeleteFunc(r.signals, func(s time.Time) bool { return at.Sub(s) >= time.Second })
		r.signals = append(r.signals, at)
		r.to.at("signals-a-second", len(r.signals), r.kind)
		if !r.began.IsZero() && !at.Before(r.began) && !at.After(r.ended) {
			r.during++
			r.to.at("signals-during-a-task", r.during, r.kind)
		}
	}
}

func (r *runOf) end() {
	if r.entity {
		r.to.at("history", r.events, r.kind)
		r.to.at("history-size", r.size, r.kind)
	}
}

// printLimits prints the highest use of each limit by any workflow, over the whole life of the server.
func (c *count) printLimits(name string) {
	for _, l := range limits {
		is := c.reached[l.name]
		bench(l.name+"-"+name, float64(is.value)/l.per, l.unit, float64(is.value)/l.most, "limit")
		fmt.Printf("  the limit is %.4g %s; so many in %s\n", l.most/l.per, l.unit, is.in)
	}
	n := 0
	for what, failed := range c.failedTasks {
		n += failed
		fmt.Printf("workflow tasks: %d %s\n", failed, what)
	}
	bench("failed-tasks-"+name, float64(n), "tasks", float64(n), "task")
}

// largestPayload calls the function with the size of every payload in the message.
func largestPayload(m protoreflect.Message, tell func(int)) {
	if p, ok := m.Interface().(*commonpb.Payload); ok {
		tell(len(p.GetData()))
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey,
				v protoreflect.Value) bool {
				largestPayload(v.Message(), tell)
				return true
			})
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				largestPayload(v.List().Get(i).Message(), tell)
			}
		case !f.IsMap() && !f.IsList() && f.Message() != nil:
			largestPayload(v.Message(), tell)
		}
		return true
	})
}

// A run starts two concurrent activities in its first task. It receives two signals during this task, and a third
// signal later. The measured maxima must match these events.
func TestHighestUseOfLimitsIsMeasured(t *testing.T) {
	at := func(ms int) *timestamppb.Timestamp { return timestamppb.New(time.UnixMilli(int64(ms))) }
	event := func(id int64, ms int, kind enumspb.EventType) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventTime: at(ms), EventType: kind}
	}
	activity := func(id int64) *historypb.HistoryEvent {
		e := event(id, 30, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				WorkflowTaskCompletedEventId: 3,
				Input:                        &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: make([]byte, 500)}}},
			},
		}
		return e
	}
	got := reached{}
	r := newRun("nodegroup", got)
	for _, e := range []*historypb.HistoryEvent{
		event(2, 10, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED), event(3, 30, enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED),
		activity(4), activity(5),
		event(6, 15, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED),
		event(7, 20, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED),
		event(8, 900, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED),
	} {
		r.see(e)
	}
	r.end()
	for limit, want := range map[string]int{
		"pending-activities": 2, "signals-a-second": 3, "signals-during-a-task": 2, "payload": 500, "history": 7,
	} {
		require.Equal(t, want, got[limit].value, limit)
	}
	require.Greater(t, got["commands-of-a-task"].value, 1000)
	require.Equal(t, "nodegroup/ActivityTaskScheduled", got["payload"].in)
	for _, l := range limits {
		require.Positive(t, l.most)
	}
}
