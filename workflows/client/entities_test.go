package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// counted answers DescribeWorkflow when it is let go, and counts.
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

// A burst of discoveries asks for each provider: Temporal is asked once for all of them, and again half a second later.
func TestProviderIsReadOnceForMany(t *testing.T) {
	c := &counted{let: make(chan error), memo: packed(t, fleet.ProviderSnapshot{ID: "milan", Holds: []string{"a-t0-1-1"}})}
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
		require.Equal(t, []string{"a-t0-1-1"}, a.state.Holds)
	}
	require.Equal(t, 1, c.count())

	c.let = make(chan error, 1)
	now = now.Add(recentFor - time.Millisecond)
	_, err := e.Provider(t.Context(), "milan")
	require.NoError(t, err)
	require.Equal(t, 1, c.count())
	now = now.Add(time.Millisecond)
	c.let <- errors.New("no answer")
	_, err = e.Provider(t.Context(), "milan")
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	require.Equal(t, 2, c.count())
}

// Who gave up says nothing of the provider: the next one asks again.
func TestAReadThatWasGivenUpIsNotRemembered(t *testing.T) {
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
