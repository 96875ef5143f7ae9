package burst

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// TestActions checks the number of billed actions. The start of a schedule counts as three, each retry counts, and all
// markers of one workflow task count as one. A memo does not count.
func TestActions(t *testing.T) {
	started := func(by string) *historypb.HistoryEvent {
		a := &historypb.WorkflowExecutionStartedEventAttributes{SearchAttributes: &commonpb.SearchAttributes{
			IndexedFields: map[string]*commonpb.Payload{by: {}},
		}}
		return &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: a,
			},
		}
	}
	attempt := func(n int32) *historypb.HistoryEvent {
		a := &historypb.ActivityTaskStartedEventAttributes{Attempt: n}
		return &historypb.HistoryEvent{
			EventType:  enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED,
			Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: a},
		}
	}
	marker := func(name string, task int64) *historypb.HistoryEvent {
		a := &historypb.MarkerRecordedEventAttributes{MarkerName: name, WorkflowTaskCompletedEventId: task}
		return &historypb.HistoryEvent{
			EventType:  enumspb.EVENT_TYPE_MARKER_RECORDED,
			Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{MarkerRecordedEventAttributes: a},
		}
	}
	signal := func(id int64) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED}
	}
	task := int64(0)
	for _, c := range []struct {
		event *historypb.HistoryEvent
		want  int
	}{
		{started("LiqoGroup"), 1}, {started("TemporalScheduledById"), 3},
		{&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_TIMER_STARTED}, 1},
		{&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_TIMER_FIRED}, 0},
		{&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED}, 0},
		{signal(2), 0}, {signal(3), 1},
		{attempt(1), 0}, {attempt(3), 2},
		{marker("LocalActivity", 4), 1}, {marker("LocalActivity", 4), 0}, {marker("LocalActivity", 9), 1},
		{marker("Version", 10), 0}, {marker("MutableSideEffect", 9), 0}, {marker("MutableSideEffect", 12), 1},
	} {
		require.Equal(t, c.want, actions(c.event, &task), "%v", c.event)
	}
}
