package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Entities reads the published state of a hub's entities. It needs no worker. Use one Entities per process, because it
// caches snapshots for a moment.
type Entities struct {
	base
	mu     sync.Mutex
	recent map[string]*recent
}

// recent caches a provider's snapshot for a moment, so that concurrent callers share one read.
type recent struct {
	read  sync.Mutex
	at    time.Time
	state fleet.ProviderSnapshot
	err   error
	// last is the last snapshot, and lastAt the start of its read. Entities.mu guards both.
	last   fleet.ProviderSnapshot
	lastAt time.Time
}

// recentFor bounds the age of a snapshot that Provider returns.
const recentFor = 500 * time.Millisecond

// NewEntities returns the Entities of a hub. taskQueue is the argument of Hub.TaskQueue.
func NewEntities(t Temporal, hub workflows.Hub, taskQueue string) *Entities {
	return &Entities{base: newBase(t, hub, taskQueue), recent: map[string]*recent{}}
}

// Provider returns a provider's last published snapshot, which may be half a second old. Errors: fleet.ErrUnavailable,
// and also fleet.ErrNotRunning when the provider does not run.
func (e *Entities) Provider(ctx context.Context, id string) (fleet.ProviderSnapshot, error) {
	r := e.of(id)
	r.read.Lock()
	defer r.read.Unlock()
	if e.now().Sub(r.at) < recentFor {
		return r.state, r.err
	}
	state, err := e.Status(ctx, id)
	if ctx.Err() == nil {
		r.state, r.err, r.at = state, err, e.now()
	}
	return state, err
}

// of returns the cache of a provider, and creates it if needed.
func (e *Entities) of(id string) *recent {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.recent[id]
	if r == nil {
		r = &recent{}
		e.recent[id] = r
	}
	return r
}

// remember stores the last snapshot of a provider and the start of its read. It ignores a read that began before the
// stored one, because concurrent reads may end in another order.
func (e *Entities) remember(id string, s fleet.ProviderSnapshot, readAt time.Time) {
	r := e.of(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !readAt.Before(r.lastAt) {
		r.last, r.lastAt = s, readAt
	}
}

// Remembered returns the last snapshot of a provider that this process has read, and its age. The age is more than a
// year when this process has read none. Remembered makes no request.
func (e *Entities) Remembered(id string) (s fleet.ProviderSnapshot, age time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.recent[id]
	if r == nil {
		r = &recent{}
	}
	return r.last, e.now().Sub(r.lastAt)
}

// Status returns a provider's snapshot as Provider does, without the cache.
func (e *Entities) Status(ctx context.Context, provider string) (s fleet.ProviderSnapshot, err error) {
	began := e.now()
	_, err = e.read(ctx, e.provider(provider), &s)
	if err == nil || errors.Is(err, fleet.ErrNotRunning) {
		e.remember(provider, s, began)
	}
	return s, err
}

// Before returns the last snapshot of the provider's previous workflow, which was terminated, reset or closed. It is
// zero when Temporal lists no such workflow any more. It needs no worker. Error: fleet.ErrUnavailable.
func (e *Entities) Before(ctx context.Context, provider string) (s fleet.ProviderSnapshot, err error) {
	id := e.provider(provider)
	page, err := e.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: beforePage, Query: fmt.Sprintf(
			"WorkflowId = '%s' AND ExecutionStatus != 'Running' AND ExecutionStatus != 'ContinuedAsNew'", id),
	})
	if err != nil {
		return s, fmt.Errorf("list earlier runs of %s: %w: %w", id, fleet.ErrUnavailable, err)
	}
	var newest *workflow.WorkflowExecutionInfo
	for _, run := range page.GetExecutions() {
		published := run.GetMemo().GetFields()[workflows.MemoSnapshot] != nil
		if published && (newest == nil || run.GetCloseTime().AsTime().After(newest.GetCloseTime().AsTime())) {
			newest = run
		}
	}
	if newest == nil {
		return s, nil
	}
	return s, decodeOf("an earlier run of "+id, newest.GetMemo().GetFields()[workflows.MemoSnapshot], &s)
}

// beforePage bounds the number of earlier runs of a provider that Before reads. It reads the newest runs first. The
// answer contains the memos of these runs.
const beforePage = 10

// Group returns a node group's last published snapshot. Errors: fleet.ErrUnavailable; also fleet.ErrNotRunning when the
// group does not run, and a refusal with fleet.RefusedNotInitialised before it has recovered.
func (e *Entities) Group(ctx context.Context, name string) (s fleet.Snapshot, err error) {
	_, err = e.read(ctx, e.group(name), &s)
	return s, err
}

// GroupNames lists the running node groups, sorted. Temporal's index may be out of date, and may permanently lack some
// groups. Use the list only to add names, never to conclude that a group is absent.
func (e *Entities) GroupNames(ctx context.Context) ([]string, error) {
	return e.running(ctx, workflows.TypeNodeGroup, e.group(""))
}

// ProviderNames lists the running providers, with the same restriction as GroupNames.
func (e *Entities) ProviderNames(ctx context.Context) ([]string, error) {
	return e.running(ctx, workflows.TypeProvider, e.provider(""))
}

// Groups returns the last published snapshots of all groups in Temporal's index, and of the groups that the parameter
// more names. The result is sorted by name. It omits groups that do not run or have published nothing. Use it only to
// display groups.
func (e *Entities) Groups(ctx context.Context, more ...string) ([]fleet.Snapshot, error) {
	return readAll(ctx, e.GroupNames, more, e.Group)
}

// Providers returns the snapshots of providers, as Groups does for groups.
func (e *Entities) Providers(ctx context.Context, more ...string) ([]fleet.ProviderSnapshot, error) {
	return readAll(ctx, e.ProviderNames, more, e.Status)
}

// maxReads bounds the number of concurrent reads of entities.
const maxReads = 32

func readAll[T any](ctx context.Context, list func(context.Context) ([]string, error), more []string,
	read func(context.Context, string) (T, error)) (out []T, err error) {
	names, err := list(ctx)
	if err != nil {
		return nil, err
	}
	names = append(names, more...)
	slices.Sort(names)
	names = slices.Compact(names)
	all, failed := make([]T, len(names)), make([]error, len(names))
	wait.ForAll(names, maxReads, func(n int, name string) { all[n], failed[n] = read(ctx, name) })
	for n, err := range failed {
		switch {
		case err == nil:
			out = append(out, all[n])
		case errors.Is(err, fleet.ErrNotRunning), fleet.IsRefused(err, fleet.RefusedNotInitialised):
		default:
			return nil, err
		}
	}
	return out, nil
}

// Cordon cordons or uncordons a provider. To record a cordon it starts the provider's entity if the entity does not
// run. It waits until the provider has published the change, or until ctx ends, and returns the snapshot. It is
// idempotent and needs a worker. Errors: fleet.ErrUnavailable, fleet.ErrOutcomeUnknown.
func (e *Entities) Cordon(ctx context.Context, provider string, on bool) (s fleet.ProviderSnapshot, err error) {
	if on {
		err = e.signalProvider(ctx, provider, workflows.SignalCordon, on)
	} else if err = e.signal(ctx, e.provider(provider), workflows.SignalCordon, on); errors.Is(err, fleet.ErrNotRunning) {
		return fleet.ProviderSnapshot{ID: provider, Phase: fleet.Absent}, nil
	}
	if err != nil {
		return s, err
	}
	for {
		s, err = e.Status(ctx, provider)
		if err == nil && s.Cordoned.IsZero() != on {
			return s, nil
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return s, errors.Join(ctx.Err(), err, fleet.ErrOutcomeUnknown)
		}
	}
}

// Ensure starts a provider's entity if it does not run. started reports whether it has started the entity.
func (e *Entities) Ensure(ctx context.Context, provider string) (started bool, err error) {
	if _, err = e.Status(ctx, provider); !errors.Is(err, fleet.ErrNotRunning) {
		return false, nil
	}
	id := e.provider(provider)
	_, err = e.temporal.ExecuteWorkflow(ctx, *e.entity(id, "provider "+provider), workflows.TypeProvider,
		workflows.NewEntity(provider))
	return err == nil, e.fromTemporal(id, err)
}
