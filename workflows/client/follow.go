package client

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Histories is the part of the SDK's client that Follow needs in addition to Temporal.
type Histories interface {
	GetWorkflowHistory(ctx context.Context, workflowID, runID string, longPoll bool,
		filter enums.HistoryEventFilterType) client.HistoryEventIterator
}

// ErrClosed means that a group that was followed has closed.
var ErrClosed = errors.New("closed")

// Follow calls each with every snapshot the group published after the given position, in order and without gaps, and
// then with each new one as it is published, until each or the context ends it. It reads the history, so nothing is
// missed between two looks, and follows the group across continue-as-new. Needs no worker.
func (g *Groups) Follow(ctx context.Context, group string, after fleet.Position,
	each func(fleet.Snapshot) error) error {
	histories, ok := g.temporal.(Histories)
	if !ok {
		return errors.New("follow: this Temporal client cannot read histories")
	}
	run := ""
	for {
		next, err := followRun(ctx, histories, g.group(group), run, &after, each)
		if err != nil {
			return err
		}
		run = next
	}
}

// followRun follows one run and returns the id of the next one.
func followRun(ctx context.Context, h Histories, id, run string, after *fleet.Position,
	each func(fleet.Snapshot) error) (string, error) {
	events := h.GetWorkflowHistory(ctx, id, run, true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
	if !ok || decodeMemo(payload, &s) != nil {
		return fleet.Snapshot{}, false
	}
	return s, true
}
