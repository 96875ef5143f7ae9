package burst

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// count reads this number of histories of each kind of workflow. It assumes the same costs for the other histories of
// the kind. For entities, it reads all histories.
const sampled = 60

// cost holds the costs of all workflows of one kind in a period.
type cost struct {
	runs                   int
	events, bytes, actions float64
	kinds, billed          map[string]float64 // events and actions by the kind of event
}

// count holds the costs of all workflows of the server in a period, and the highest use of each limit.
type count struct {
	costs       map[string]*cost
	undone      int
	reached     reached
	failedTasks map[string]int
}

// count reads the histories and returns their costs.
func (s *stack) count(from, to time.Time) *count {
	s.t.Helper()
	s.quiet()
	c := &count{costs: map[string]*cost{}, reached: reached{}, failedTasks: map[string]int{}}
	kinds := map[string][]*workflowpb.WorkflowExecutionInfo{}
	var page []byte
	for {
		r, err := s.temporal.ListWorkflow(s.ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000,
			NextPageToken: page})
		require.NoError(s.t, err)
		for _, e := range r.Executions {
			kind, _, _ := strings.Cut(e.Execution.WorkflowId, "/")
			if kind == "undo" {
				c.undone++
			}
			over := e.CloseTime != nil && e.CloseTime.AsTime().Before(from) || e.StartTime.AsTime().After(to)
			if !over || entity(kind) || isBare(kind) {
				kinds[kind] = append(kinds[kind], e)
			}
		}
		if page = r.NextPageToken; len(page) == 0 {
			break
		}
	}
	for kind, all := range kinds {
		step := 1
		if !entity(kind) {
			step = max(1, len(all)/sampled)
		}
		c.costs[kind] = &cost{runs: len(all), kinds: map[string]float64{}, billed: map[string]float64{}}
		read := (len(all) + step - 1) / step
		for i := 0; i < len(all); i += step {
			s.read(c, kind, all[i].Execution, from, to, float64(len(all))/float64(read))
		}
	}
	c.costs["heartbeats"] = &cost{actions: s.beats.between(from, to)}
	return c
}

func entity(kind string) bool { return kind == "nodegroup" || kind == "provider" }

// isBare reports whether the kind belongs to the baseline. The baseline's workflows count even outside the period.
func isBare(kind string) bool { return strings.HasPrefix(kind, "bare") }

// read adds the costs of one history. The weight is the number of histories that this history represents.
func (s *stack) read(c *count, kind string, e *commonpb.WorkflowExecution, from, to time.Time, weight float64) {
	s.t.Helper()
	markerTask := int64(0)
	run := newRun(kind, c.reached)
	history := s.temporal.GetWorkflowHistory(s.ctx, e.WorkflowId, e.RunId, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(s.t, err)
		run.see(event)
		c.see(kind, event)
		if at := event.EventTime.AsTime(); !isBare(kind) && (at.Before(from) || !at.Before(to)) {
			continue
		}
		k := c.costs[kind]
		k.events += weight
		k.bytes += weight * float64(proto.Size(event))
		name := strings.TrimPrefix(event.EventType.String(), "EVENT_TYPE_")
		billed := weight * float64(actions(event, &markerTask))
		k.actions += billed
		k.kinds[name] += weight
		k.billed[name] += billed
	}
	run.end()
}

// see counts the failed workflow tasks.
func (c *count) see(kind string, e *historypb.HistoryEvent) {
	if f := e.GetWorkflowTaskFailedEventAttributes(); f != nil {
		c.failedTasks[kind+"/failed/"+f.Cause.String()]++
	}
	if f := e.GetWorkflowTaskTimedOutEventAttributes(); f != nil {
		c.failedTasks[kind+"/timed-out/"+f.TimeoutType.String()]++
	}
}

// actions returns the number of actions that Temporal Cloud bills for the event. The sources are its documentation
// (https://docs.temporal.io/cloud/actions) and the count in Temporal's own UI (temporalio/ui,
// get-event-billable-actions.ts). Neither counts the change of a memo. Queries and refused updates leave no event and
// are not counted. Heartbeats are counted when they are sent. A signal counts in the workflow that receives it, but a
// signal that starts its workflow counts as part of the start. markerTask is the workflow task of the last marker,
// because all markers of one task are one action.
func actions(e *historypb.HistoryEvent, markerTask *int64) int {
	switch e.EventType {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		started := e.GetWorkflowExecutionStartedEventAttributes()
		if _, ok := started.GetSearchAttributes().GetIndexedFields()["TemporalScheduledById"]; ok {
			return 3 // includes the two actions of the schedule itself
		}
		return 1
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		if e.EventId == 2 {
			return 0
		}
		return 1
	case enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		return 1
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		return int(e.GetActivityTaskStartedEventAttributes().GetAttempt()) - 1 // each retry is an action
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED: // retries of local activities after their first task
		m := e.GetWorkflowTaskCompletedEventAttributes().GetMeteringMetadata()
		return int(min(m.GetNonfirstLocalActivityExecutionAttempts(), 100))
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		m := e.GetMarkerRecordedEventAttributes()
		if m.GetMarkerName() != "Version" && m.GetWorkflowTaskCompletedEventId() != *markerTask {
			*markerTask = m.GetWorkflowTaskCompletedEventId()
			return 1
		}
	}
	return 0
}

// printCosts prints a table of the costs and the sums for each instance. When the baseline has run, it also prints the
// baseline's sums.
func (c *count) printCosts(name string, instances int) {
	var sum, base cost
	fmt.Printf("\ncosts of %s: events and billed actions, in all and per instance\n", name)
	fmt.Printf("%-14s %8s %10s %12s %10s %10s %10s\n", "workflow", "runs", "events", "bytes", "actions", "events/i",
		"actions/i")
	line := func(kind string, k cost) {
		n := float64(instances)
		fmt.Printf("%-14s %8d %10.0f %12.0f %10.0f %10.1f %10.1f\n", kind, k.runs, k.events, k.bytes, k.actions, k.events/n,
			k.actions/n)
	}
	for _, kind := range slices.Sorted(maps.Keys(c.costs)) {
		k := *c.costs[kind]
		if isBare(kind) {
			base.events, base.actions = base.events+k.events, base.actions+k.actions
		}
		if isBare(kind) || k.events+k.actions == 0 {
			continue
		}
		line(kind, k)
		for _, name := range slices.Sorted(maps.Keys(k.kinds)) {
			fmt.Printf("  %-52s %10.2f %10.2f\n", name, k.kinds[name]/float64(instances), k.billed[name]/float64(instances))
		}
		sum.runs, sum.events, sum.bytes, sum.actions = sum.runs+k.runs, sum.events+k.events, sum.bytes+k.bytes,
			sum.actions+k.actions
	}
	line("all", sum)
	per := float64(instances)
	events, actions, against := sum.events, sum.actions, "itself"
	if bare := c.costs["bare"]; bare != nil {
		n := float64(bare.runs)
		events, actions, against = base.events/n*per, base.actions/n*per, "bare"
	}
	bench("events-"+name, sum.events/per, "events/instance", sum.events/events, against)
	bench("actions-"+name, sum.actions/per, "actions/instance", sum.actions/actions, against)
}

// printIdle prints the actions per minute of one group and of the whole hub at rest.
func (c *count) printIdle(span time.Duration) {
	hub, groups := 0.0, 1.0
	for kind, k := range c.costs {
		if !isBare(kind) {
			hub += k.actions / span.Minutes()
		}
		if kind == "nodegroup" {
			groups = k.actions / span.Minutes() / 2 // the group and the probe group
		}
	}
	bench("idle-group", groups, "actions/min", groups, "minute")
	bench("idle-hub", hub, "actions/min", hub, "minute")
}
