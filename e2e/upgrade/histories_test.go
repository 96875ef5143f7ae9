package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// counts holds sums over all histories.
type counts struct {
	runs       int
	tasks      map[string]int // workflow tasks by build
	crossed    map[string]int // runs with tasks of more than one build, by type
	torn       []string       // runs of a pinned type with tasks of both versions
	continued  int            // runs of entities that continued as new
	terminated map[string]int // by type
	wrong      []string
}

// pinnedTypes are the workflows that end with the version that began them. A run that began before versioning was
// enabled is pinned to the version that continues it.
var pinnedTypes = []string{workflows.TypeScaleOut, workflows.TypePeering}

// lasting lists the workflows that may still run when no instance and no object of ours exists.
var lasting = []string{workflows.TypeNodeGroup, workflows.TypeProvider, workflows.TypeHub}

// harmless lists the causes for which Temporal fails a workflow task although the worker's answer was correct.
var harmless = []enums.WorkflowTaskFailedCause{
	enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, enums.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
	enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE, enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_UPDATE,
}

// staleStream is the SDK's error for a task whose events the server delivered incompletely, for example after an update
// whose worker has died. The next try receives all events (temporalio/temporal issue 7741).
const staleStream = "premature end of stream"

// count reads every history. It returns an error while a workflow that must end still runs.
func (s *stack) count() (counts, error) {
	c := counts{tasks: map[string]int{}, crossed: map[string]int{}, terminated: map[string]int{}}
	request := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 200}
	for {
		page, err := s.temporal.ListWorkflow(s.t.Context(), request)
		if err != nil {
			return c, err
		}
		for _, w := range page.GetExecutions() {
			if err := s.add(&c, w); err != nil {
				return c, err
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return c, nil
		}
	}
}

func (s *stack) add(c *counts, w *workflow.WorkflowExecutionInfo) error {
	id, run, kind := w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId(), w.GetType().GetName()
	c.runs++
	switch status := w.GetStatus(); status {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		if !slices.Contains(lasting, kind) {
			return fmt.Errorf("%s still runs", id)
		}
		d, err := s.temporal.DescribeWorkflowExecution(s.t.Context(), id, run)
		if err != nil {
			return err
		}
		if task := d.GetPendingWorkflowTask(); task.GetAttempt() > 3 {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: its workflow task is at attempt %d", id, task.GetAttempt()))
		}
	case enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		c.continued++
	case enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		c.terminated[kind]++
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		c.wrong = append(c.wrong, fmt.Sprintf("%s (run %s) is %s", id, run, status))
	}
	by := map[string]bool{}
	events := s.temporal.GetWorkflowHistory(s.t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return err
		}
		if done := e.GetWorkflowTaskCompletedEventAttributes(); done != nil {
			build := builtBy(done)
			by[build] = true
			c.tasks[build]++
		}
		if failed := e.GetWorkflowTaskFailedEventAttributes(); failed != nil &&
			!slices.Contains(harmless, failed.GetCause()) &&
			!strings.Contains(failed.GetFailure().GetMessage(), staleStream) {
			c.wrong = append(c.wrong, fmt.Sprintf("%s (run %s): a workflow task failed, %s: %s", id, run, failed.GetCause(),
				failed.GetFailure().GetMessage()))
		}
	}
	if len(by) > 1 {
		c.crossed[kind]++
	}
	if by[oldBuild] && by[newBuild] && slices.Contains(pinnedTypes, kind) {
		c.torn = append(c.torn, id)
	}
	return nil
}

// builtBy returns the build that has completed a task.
func builtBy(e *history.WorkflowTaskCompletedEventAttributes) string {
	if v := e.GetDeploymentVersion(); v.GetBuildId() != "" {
		return v.GetBuildId()
	}
	return e.GetWorkerVersion().GetBuildId()
}

// judge checks the counts against the allowed values, and prints them.
func (s *stack) judge(m mode, c counts) {
	s.t.Helper()
	builds := slices.Sorted(maps.Keys(c.tasks))
	fmt.Printf("UPGRADE %s waves=%d runs=%d builds=%d tasks=%v crossed=%v continued=%d replaced=%v wrong=%d\n", s.t.Name(),
		s.waves, c.runs, len(builds), slices.Collect(maps.Values(c.tasks)), c.crossed, c.continued, c.terminated,
		len(c.wrong))
	require.Empty(s.t, c.wrong)
	assert.Positive(s.t, c.crossed[workflows.TypeNodeGroup], "no run of a group went from one build to the other")
	assert.Positive(s.t, c.crossed[workflows.TypeScaleIn], "no stuck scale-in went from one build to the other")
	if !m {
		assert.GreaterOrEqual(s.t, len(builds), 2)
		assert.Empty(s.t, c.terminated)
		return
	}
	assert.Subset(s.t, builds, []string{oldBuild, newBuild})
	assert.Empty(s.t, c.torn)
	for kind := range c.terminated {
		assert.Contains(s.t, pinnedTypes, kind)
	}
	assert.Positive(s.t, c.terminated[workflows.TypeScaleOut], "nothing was pinned to the workers that died")
}
