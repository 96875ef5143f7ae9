package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// ErrOtherCluster means that the hub is claimed for another cluster.
var ErrOtherCluster = errors.New("choose another hub, or adopt this one with: liqo-autoscaler temporal adopt-hub")

// Hub reads and claims the hub of this installation.
type Hub struct{ base }

// NewHub returns the Hub. taskQueue is the argument of Hub.TaskQueue.
func NewHub(t Temporal, hub workflows.Hub, taskQueue string) *Hub {
	return &Hub{newBase(t, hub, taskQueue)}
}

func (h *Hub) id() string { return h.hub.ID(workflows.HubID) }

// State reads the published state of the hub. It needs no worker. Errors: fleet.ErrUnavailable, and also
// fleet.ErrNotRunning while the hub is unclaimed.
func (h *Hub) State(ctx context.Context) (s workflows.HubState, err error) {
	memo, err := h.memo(ctx, h.id())
	if err != nil {
		return s, err
	}
	payload, ok := memo[workflows.MemoHub]
	if !ok {
		return s, fmt.Errorf("%s has no state: %w", h.id(), fleet.ErrUnavailable)
	}
	return s, decodeOf(h.id(), payload, &s)
}

// Ended reads the sums of ended groups for the month in which the hub last published them. It returns zero while the
// hub is unclaimed. It needs no worker. Error: fleet.ErrUnavailable.
func (h *Hub) Ended(ctx context.Context) (ended money.Ended, err error) {
	memo, err := h.memo(ctx, h.id())
	if errors.Is(err, fleet.ErrNotRunning) {
		return ended, nil
	}
	if payload, ok := memo[workflows.MemoEnded]; err == nil && ok {
		err = decodeOf(h.id(), payload, &ended)
	}
	return ended, err
}

// Bills reads the bills of the groups that have ended. It returns nil while the hub is unclaimed. It needs a worker.
// Error: fleet.ErrUnavailable.
func (h *Hub) Bills(ctx context.Context) (book money.Book, err error) {
	value, err := h.temporal.QueryWorkflow(withoutDeadline{ctx}, h.id(), "", workflows.QueryBills)
	if err = h.fromTemporal(h.id(), err); errors.Is(err, fleet.ErrNotRunning) {
		return nil, nil
	}
	if err == nil {
		err = value.Get(&book)
	}
	return book, err
}

// HandOver sends bills of groups that have ended to the hub. It is idempotent and needs no worker. Errors:
// fleet.ErrUnavailable, and also fleet.ErrNotRunning while the hub is unclaimed.
func (h *Hub) HandOver(ctx context.Context, bills []money.Bill) error {
	return h.signal(ctx, h.id(), workflows.SignalBills, bills)
}

// Claim claims the hub for a cluster if the hub is unclaimed, and returns the hub's state. It is idempotent and needs
// no worker. Errors: ErrOtherCluster when the hub belongs to another cluster, fleet.ErrUnavailable.
func (h *Hub) Claim(ctx context.Context, cluster string) (workflows.HubState, error) {
	s, err := h.State(ctx)
	if errors.Is(err, fleet.ErrNotRunning) {
		if err = h.start(ctx, cluster, money.Ended{}, enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL); err == nil {
			s, err = h.State(ctx)
		}
	}
	if err == nil {
		err = h.belongs(s, cluster)
	}
	return s, err
}

// start starts the workflow that claims the hub for a cluster. The policy determines the treatment of an existing
// claim. FAIL keeps the claim and returns no error, so several processes that call start concurrently all read the
// same claim. TERMINATE_EXISTING replaces the claim. The parameter ended contains the sums of ended groups for the new
// claim.
func (h *Hub) start(ctx context.Context, cluster string, ended money.Ended,
	policy enums.WorkflowIdConflictPolicy) error {
	options := h.entity(h.id(), "hub of cluster "+cluster)
	options.WorkflowIDConflictPolicy = policy
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	in := workflows.HubInput{HubState: workflows.HubState{Cluster: cluster}}
	options.Memo = map[string]any{workflows.MemoHub: in.HubState, workflows.MemoEnded: ended}
	if len(ended.Rows) > 0 {
		var book money.Book
		for _, s := range ended.Rows {
			book.Add(s.Bill())
		}
		var err error
		if in.Bills, err = fleet.Encode(book); err != nil {
			return err
		}
	}
	_, err := h.temporal.ExecuteWorkflow(withoutDeadline{ctx}, *options, workflows.TypeHub, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return nil
	}
	return h.fromTemporal(h.id(), err)
}

// belongs returns an error if a process of this cluster must not work for the hub.
func (h *Hub) belongs(s workflows.HubState, cluster string) error {
	if s.Cluster == cluster {
		return nil
	}
	return fmt.Errorf("hub %s belongs to the cluster with UID %s, and this is %s: %w", h.hub.Name(), s.Cluster, cluster,
		ErrOtherCluster)
}

// Check returns nil if a process of this cluster may work for the hub: the hub belongs to this cluster or is
// unclaimed. It needs no worker. Errors: ErrOtherCluster, fleet.ErrUnavailable.
func (h *Hub) Check(ctx context.Context, cluster string) error {
	s, err := h.State(ctx)
	switch {
	case errors.Is(err, fleet.ErrNotRunning):
		return nil
	case err != nil:
		return err
	}
	return h.belongs(s, cluster)
}

// Adopt transfers the hub from any previous cluster to this cluster, after this cluster was rebuilt. The processes of
// the previous cluster must have stopped. A process that still runs cannot claim the hub in between, because Temporal
// replaces the claim in one step. Adopt is idempotent and needs no worker. Errors: fleet.ErrUnavailable, and
// ErrOtherCluster when another cluster adopts the hub at the same time.
func (h *Hub) Adopt(ctx context.Context, cluster string) error {
	s, err := h.State(ctx)
	if err == nil && s.Cluster == cluster {
		return nil
	}
	if err != nil && !errors.Is(err, fleet.ErrNotRunning) {
		return err
	}
	ended, err := h.Ended(ctx) // a query for the bills would need a worker, and no worker may run now
	if err != nil {
		return err
	}
	if err := h.start(ctx, cluster, ended, enums.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING); err != nil {
		return err
	}
	_, err = h.Claim(ctx, cluster) // verifies the claim
	return err
}

// PauseObserver stops the observer, or resumes it, and waits until the hub has published the change, or until ctx ends.
// It is idempotent and needs a worker. Errors: fleet.ErrUnavailable, fleet.ErrOutcomeUnknown.
func (h *Hub) PauseObserver(ctx context.Context, on bool) error {
	if err := h.signal(ctx, h.id(), workflows.SignalPauseObserver, on); err != nil {
		return err
	}
	for {
		s, err := h.State(ctx)
		if err == nil && s.ObserverPaused == on {
			return nil
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err, fleet.ErrOutcomeUnknown)
		}
	}
}
