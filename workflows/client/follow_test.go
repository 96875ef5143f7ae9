package client

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// runs holds the histories of a group's runs, by run id; "" is the current run.
type runs struct {
	Temporal
	events map[string][]*history.HistoryEvent
	end    error
}

func (r runs) GetWorkflowHistory(_ context.Context, _, run string, waits bool,
	_ enums.HistoryEventFilterType) client.HistoryEventIterator {
	if !waits {
		return &iterator{end: errors.New("it ends with what is there")}
	}
	return &iterator{left: r.events[run], end: r.end}
}

// iterator returns the events of a run, and then the run's error, if any.
type iterator struct {
	left []*history.HistoryEvent
	end  error
}

func (i *iterator) HasNext() bool { return len(i.left) > 0 || i.end != nil }

func (i *iterator) Next() (*history.HistoryEvent, error) {
	if len(i.left) == 0 {
		return nil, i.end
	}
	e := i.left[0]
	i.left = i.left[1:]
	return e, nil
}

func published(t *testing.T, epoch string, revision int64) *history.HistoryEvent {
	t.Helper()
	memo := map[string]*common.Payload{workflows.MemoSnapshot: packed(t, fleet.Snapshot{Group: "gpu", Epoch: epoch,
		Revision: revision})}
	return &history.HistoryEvent{Attributes: &history.HistoryEvent_WorkflowPropertiesModifiedEventAttributes{
		WorkflowPropertiesModifiedEventAttributes: &history.WorkflowPropertiesModifiedEventAttributes{
			UpsertedMemo: &common.Memo{Fields: memo},
		},
	}}
}

func continued(run string) *history.HistoryEvent {
	return &history.HistoryEvent{Attributes: &history.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
		WorkflowExecutionContinuedAsNewEventAttributes: &history.WorkflowExecutionContinuedAsNewEventAttributes{
			NewExecutionRunId: run,
		},
	}}
}

// Follow returns each snapshot after the caller's position once, across continue-as-new, until the group is closed.
func TestFollowReturnsEachSnapshotOnce(t *testing.T) {
	old, epoch := "t0", "t1"
	r := runs{events: map[string][]*history.HistoryEvent{
		"":       {published(t, old, 7), published(t, epoch, 2), {}, published(t, epoch, 3), continued("second")},
		"second": {published(t, epoch, 3), published(t, epoch, 5)},
	}}
	var seen []int64
	each := func(s fleet.Snapshot) error { seen = append(seen, s.Revision); return nil }
	err := NewGroups(r, "", "").Follow(t.Context(), "gpu", fleet.Position{Epoch: epoch, Revision: 2}, each)
	require.ErrorIs(t, err, ErrClosed)
	require.Equal(t, []int64{3, 5}, seen)

	enough := errors.New("enough")
	err = NewGroups(r, "", "").Follow(t.Context(), "gpu", fleet.Position{}, func(fleet.Snapshot) error { return enough })
	require.ErrorIs(t, err, enough)

	r.end = errors.New("no answer")
	delete(r.events, "")
	ignore := func(fleet.Snapshot) error { return nil }
	require.ErrorContains(t, NewGroups(r, "", "").Follow(t.Context(), "gpu", fleet.Position{}, ignore),
		"read the history of nodegroup/gpu: no answer")
	r.end = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = NewGroups(r, "", "").Follow(ctx, "gpu", fleet.Position{}, ignore)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrClosed)
}
