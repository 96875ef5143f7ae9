package client

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// ErrClosed means that the followed group has closed.
var ErrClosed = errors.New("closed")

// Follow passes every snapshot that the group has published after the given position to the function each, in order
// and without gaps. It then passes every new snapshot to the function as soon as the group publishes it. Follow ends
// when the function returns an error or the context ends. It reads the workflow history, so it misses no snapshot, and
// follows the group across continue-as-new. It needs no worker.
func (g *Groups) Follow(ctx context.Context, group string, after fleet.Position,
	each func(fleet.Snapshot) error) (err error) {
	for run := ""; err == nil; {
		run, err = g.followRun(ctx, g.group(group), run, &after, each)
	}
	return err
}

// followRun follows one run and returns the id of the next run.
func (g *Groups) followRun(ctx context.Context, id, run string, after *fleet.Position,
	each func(fleet.Snapshot) error) (string, error) {
	events := g.temporal.GetWorkflowHistory(ctx, id, run, true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return "", fmt.Errorf("read the history of %s: %w", id, err)
		}
		if can := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); can != nil {
			return can.GetNewExecutionRunId(), nil
		}
		s, ok := snapshotIn(e)
		if !ok || !after.Before(s.Position()) {
			continue
		}
		*after = s.Position()
		if err := each(s); err != nil {
			return "", err
		}
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("follow %s: %w", id, err)
	}
	return "", fmt.Errorf("follow %s: %w", id, ErrClosed)
}

func snapshotIn(e *history.HistoryEvent) (fleet.Snapshot, bool) {
	var s fleet.Snapshot
	payload, ok := e.GetWorkflowPropertiesModifiedEventAttributes().GetUpsertedMemo().GetFields()[workflows.MemoSnapshot]
	if !ok || workflows.DecodeMemo(payload, &s) != nil {
		return fleet.Snapshot{}, false
	}
	return s, true
}
