package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// counted answers DescribeWorkflow when the test permits it, and counts the calls.
type counted struct {
	Temporal
	mu    sync.Mutex
	reads int
	let   chan error
	memo  *common.Payload
}

func (c *counted) DescribeWorkflow(ctx context.Context, _, _ string) (*client.WorkflowExecutionDescription, error) {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	select {
	case err := <-c.let:
		return &client.WorkflowExecutionDescription{WorkflowExecutionMetadata: client.WorkflowExecutionMetadata{
			Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
			Memo:   &common.Memo{Fields: map[string]*common.Payload{workflows.MemoSnapshot: c.memo}},
		}}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

// Two reads of a provider are concurrent, and the older one ends last. The state of the newer one stays.
func TestOlderReadDoesNotReplaceANewerOne(t *testing.T) {
	e := NewEntities(&counted{}, "", "")
	began := time.Unix(1_800_000_000, 0)
	e.now = func() time.Time { return began.Add(time.Second) }
	e.remember("milan", fleet.ProviderSnapshot{Holds: []string{"new"}}, began)
	e.remember("milan", fleet.ProviderSnapshot{Holds: []string{"old"}}, began.Add(-time.Millisecond))
	state, age := e.Remembered("milan")
	require.Equal(t, []string{"new"}, state.Holds)
	require.Equal(t, time.Second, age)
}

// Concurrent discoveries share the reads of a provider. One request to Temporal serves them all, and half a second must
// pass before the next request.
func TestConcurrentDiscoveriesShareOneRead(t *testing.T) {
	c := &counted{let: make(chan error), memo: packed(t, fleet.ProviderSnapshot{ID: "milan",
		Holds: []string{"lca-a-t0-1-1"}})}
	e := NewEntities(c, "", "")
	now := time.Unix(1_800_000_000, 0)
	e.now = func() time.Time { return now }
	const many = 20
	type answer struct {
		state fleet.ProviderSnapshot
		err   error
	}
	answers := make(chan answer, many)
	var begun sync.WaitGroup
	begun.Add(many)
	for range many {
		go func() {
			begun.Done()
			s, err := e.Provider(t.Context(), "milan")
			answers <- answer{s, err}
		}()
	}
	begun.Wait()
	require.Eventually(t, func() bool { return c.count() > 0 }, waitLimit, waitTick)
	close(c.let)
	for range many {
		a := <-answers
		require.NoError(t, a.err)
		require.Equal(t, []string{"lca-a-t0-1-1"}, a.state.Holds)
	}
	require.Equal(t, 1, c.count())

	c.let = make(chan error, 1)
	now = now.Add(499 * time.Millisecond)
	_, err := e.Provider(t.Context(), "milan")
	require.NoError(t, err)
	require.Equal(t, 1, c.count())
	now = now.Add(time.Millisecond)
	c.let <- errors.New("no answer")
	for range 2 {
		_, err = e.Provider(t.Context(), "milan")
		require.ErrorIs(t, err, fleet.ErrUnavailable)
		require.Equal(t, 2, c.count(), "an error is remembered as well")
	}
}

// When a caller gives up its read of a provider, the read leaves no result. The next caller reads again.
func TestAbandonedReadIsNotCached(t *testing.T) {
	c := &counted{let: make(chan error), memo: packed(t, fleet.ProviderSnapshot{ID: "milan"})}
	e := NewEntities(c, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Provider(ctx, "milan")
	require.Error(t, err)
	go func() { c.let <- nil }()
	s, err := e.Provider(t.Context(), "milan")
	require.NoError(t, err)
	require.Equal(t, "milan", s.ID)
}

// ended lists closed runs.
type ended struct {
	Temporal
	mu    sync.Mutex
	query string
	runs  []*workflow.WorkflowExecutionInfo
	err   error
}

func (e *ended) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.query = r.GetQuery()
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: e.runs}, e.err
}

// Before returns the last state that a provider published in its earlier runs. It reads the memo of the newest closed
// run that has a state.
func TestBeforeReturnsTheLastPublishedState(t *testing.T) {
	run := func(second int64, s *fleet.ProviderSnapshot) *workflow.WorkflowExecutionInfo {
		info := &workflow.WorkflowExecutionInfo{CloseTime: timestamppb.New(time.Unix(second, 0))}
		if s != nil {
			info.Memo = &common.Memo{Fields: map[string]*common.Payload{workflows.MemoSnapshot: packed(t, *s)}}
		}
		return info
	}
	first := &fleet.ProviderSnapshot{ID: "milan", Revision: 1, Cordoned: time.Unix(1, 0).UTC()}
	second := &fleet.ProviderSnapshot{ID: "milan", Revision: 2}
	for name, c := range map[string]struct {
		runs []*workflow.WorkflowExecutionInfo
		want int64
	}{
		"none": {}, "the newest": {[]*workflow.WorkflowExecutionInfo{run(10, first), run(20, second)}, 2},
		"in any order":       {[]*workflow.WorkflowExecutionInfo{run(20, second), run(10, first)}, 2},
		"one that spoke":     {[]*workflow.WorkflowExecutionInfo{run(30, nil), run(10, first)}, 1},
		"no run has a state": {[]*workflow.WorkflowExecutionInfo{run(30, nil)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			list := &ended{runs: c.runs}
			s, err := NewEntities(list, "edge", "").Before(t.Context(), "milan")
			require.NoError(t, err)
			require.Equal(t, c.want, s.Revision)
			require.Equal(t, c.want == 1, !s.Cordoned.IsZero())
			require.Contains(t, list.query, "WorkflowId = 'edge/provider/milan'")
		})
	}
	_, err := NewEntities(&ended{err: errors.New("no answer")}, "", "").Before(t.Context(), "milan")
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	unread := run(20, second)
	unread.Memo.Fields[workflows.MemoSnapshot] = &common.Payload{Data: []byte("{")}
	_, err = NewEntities(&ended{runs: []*workflow.WorkflowExecutionInfo{unread}}, "", "").Before(t.Context(), "milan")
	require.ErrorContains(t, err, "decode the memo of an earlier run of provider/milan")
}

// cordoned is a fake Temporal with the entity of one provider. The entity may run or not, and publishes each order
// immediately.
type cordoned struct {
	Temporal
	t              *testing.T
	runs, cordoned bool
}

func (c *cordoned) SignalWithStartWorkflow(_ context.Context, _, _ string, arg any, _ client.StartWorkflowOptions, _ any,
	_ ...any) (client.WorkflowRun, error) {
	c.runs, c.cordoned = true, arg.(bool)
	return nil, nil
}

func (c *cordoned) SignalWorkflow(_ context.Context, _, _, _ string, arg any) error {
	if !c.runs {
		return serviceerror.NewNotFound("no such workflow")
	}
	c.cordoned = arg.(bool)
	return nil
}

func (c *cordoned) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	s := fleet.ProviderSnapshot{ID: "milan", Revision: 1}
	if c.cordoned {
		s.Cordoned = time.Unix(1, 0).UTC()
	}
	return &client.WorkflowExecutionDescription{WorkflowExecutionMetadata: client.WorkflowExecutionMetadata{
		Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Memo:   &common.Memo{Fields: map[string]*common.Payload{workflows.MemoSnapshot: packed(c.t, s)}},
	}}, nil
}

// If a provider's entity does not run, a cordon starts it and an uncordon does not.
func TestCordonStartsAStoppedProvider(t *testing.T) {
	temporal := &cordoned{t: t}
	e := NewEntities(temporal, "", "")
	s, err := e.Cordon(t.Context(), "milan", false)
	require.NoError(t, err)
	require.Equal(t, fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Absent}, s)
	require.False(t, temporal.runs)
	for _, on := range []bool{true, false, true} {
		s, err = e.Cordon(t.Context(), "milan", on)
		require.NoError(t, err)
		require.Equal(t, on, !s.Cordoned.IsZero())
	}
}

// If the provider's snapshot does not confirm a cordon before the caller's deadline, the cordon may have failed. The
// caller then gets the error "outcome unknown" with the reason.
func TestUnconfirmedCordonHasAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &namespace{published: map[string]*common.Payload{"provider/milan": packed(t, fleet.ProviderSnapshot{})}}
		e := NewEntities(n, "", "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := e.Cordon(ctx, "milan", true)
		require.ErrorIs(t, err, fleet.ErrOutcomeUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		delete(n.published, "provider/milan") // the entity has no state yet, so it shows neither outcome
		for _, on := range []bool{true, false} {
			_, err = e.Cordon(ctx, "milan", on)
			require.ErrorIs(t, err, fleet.ErrOutcomeUnknown)
			require.ErrorIs(t, err, fleet.ErrNotRunning)
		}
		n.err = errors.New("no answer")
		_, err = e.Cordon(t.Context(), "milan", true)
		require.ErrorIs(t, err, fleet.ErrOutcomeUnknown)
		require.ErrorContains(t, err, "no answer")
	})
}

// Remembered returns the result of the last successful read with its age. It sends no request, and a later read that
// failed does not change the result.
func TestRememberedReturnsTheLastReadWithItsAge(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	c := &counted{let: make(chan error, 1), memo: packed(t, fleet.ProviderSnapshot{ID: "milan"})}
	e := NewEntities(c, "", "")
	e.now = func() time.Time { return now }
	_, age := e.Remembered("milan")
	require.Greater(t, age, 1000*time.Hour, "it was never read")
	c.let <- nil
	_, err := e.Provider(t.Context(), "milan")
	require.NoError(t, err)
	for _, fails := range []error{nil, errors.New("no answer")} {
		if fails != nil {
			c.let <- fails
			_, err = e.Provider(t.Context(), "milan")
			require.Error(t, err)
		} else {
			now = now.Add(3 * time.Second)
		}
		s, age := e.Remembered("milan")
		require.Equal(t, "milan", s.ID)
		require.Equal(t, 3*time.Second, age)
	}
	require.Equal(t, 2, c.count())
}

// Entities that Temporal's visibility index has lost are read when the caller names them.
func TestEntitiesMissingInTheIndexAreReadByName(t *testing.T) {
	n := &namespace{
		pages: [][]string{{"nodegroup/a"}},
		published: map[string]*common.Payload{"nodegroup/a": packed(t, fleet.Snapshot{Group: "a"}),
			"nodegroup/b": packed(t, fleet.Snapshot{Group: "b"})},
	}
	groups, err := NewEntities(n, "", "").Groups(t.Context(), "b", "a")
	require.NoError(t, err)
	require.Equal(t, []fleet.Snapshot{{Group: "a"}, {Group: "b"}}, groups)
}
