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

// Entities reads what the entities of a hub publish. Needs no worker. Use one per process: it remembers for a moment.
type Entities struct {
	base
	mu     sync.Mutex
	recent map[string]*recent
}

// recent is a provider as it was read a moment ago; many who ask at once share one read.
type recent struct {
	read  sync.Mutex
	at    time.Time
	state fleet.ProviderSnapshot
	err   error
	// last is the last answer, and lastAt when it was asked for; Entities.mu guards both.
	last   fleet.ProviderSnapshot
	lastAt time.Time
}

// recentFor is how old what Provider returns may be.
const recentFor = 500 * time.Millisecond

// NewEntities makes the Entities of a hub; the task queue is named as Hub.TaskQueue has it.
func NewEntities(t Temporal, hub workflows.Hub, taskQueue string) *Entities {
	return &Entities{base: newBase(t, hub, taskQueue), recent: map[string]*recent{}}
}

// Provider returns a provider as it published last, at most a moment old. Errors: fleet.ErrUnavailable, with
// fleet.ErrNotRunning when it does not run.
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

// of is what is known of a provider.
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

// remember keeps the last answer of a provider.
func (e *Entities) remember(id string, s fleet.ProviderSnapshot, asked time.Time) {
	r := e.of(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	r.last, r.lastAt = s, asked
}

// Remembered returns a provider as this process last read it, and how long ago that was: more than a year when this
// process never read it. Remembered asks nobody.
func (e *Entities) Remembered(id string) (s fleet.ProviderSnapshot, age time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.recent[id]
	if r == nil {
		r = &recent{}
	}
	return r.last, e.now().Sub(r.lastAt)
}

// Status is Provider, read anew.
func (e *Entities) Status(ctx context.Context, provider string) (s fleet.ProviderSnapshot, err error) {
	began := e.now()
	_, err = e.read(ctx, e.provider(provider), &s)
	if err == nil || errors.Is(err, fleet.ErrNotRunning) {
		e.remember(provider, s, began)
	}
	return s, err
}

// Before is what the provider's last life has published, which was terminated, reset or came to its end; zero when
// Temporal lists none, any more. Needs no worker. Error: fleet.ErrUnavailable.
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

// beforePage is how many of a provider's earlier runs are looked at, the newest first. Their memos come too.
const beforePage = 10

// Group returns a node group as it published last. Errors: fleet.ErrUnavailable, with fleet.ErrNotRunning when it does
// not run, with a fleet.RefusedNotInitialised before it has recovered.
func (e *Entities) Group(ctx context.Context, name string) (s fleet.Snapshot, err error) {
	_, err = e.read(ctx, e.group(name), &s)
	return s, err
}

// GroupNames lists the node groups that run, sorted, and ProviderNames the providers. Temporal's index lags behind, and
// may lack some for ever: they add names, and nothing is absent because they do not list it.
func (e *Entities) GroupNames(ctx context.Context) ([]string, error) {
	return e.running(ctx, workflows.TypeNodeGroup, e.group(""))
}

// ProviderNames is GroupNames for providers.
func (e *Entities) ProviderNames(ctx context.Context) ([]string, error) {
	return e.running(ctx, workflows.TypeProvider, e.provider(""))
}

// Groups returns every group that Temporal's index lists, and those named, each as it published last, in the order of
// their names; those that do not run, or have published nothing, are left out. It is for people.
func (e *Entities) Groups(ctx context.Context, more ...string) ([]fleet.Snapshot, error) {
	return readAll(ctx, e.GroupNames, more, e.Group)
}

// Providers is Groups for providers.
func (e *Entities) Providers(ctx context.Context, more ...string) ([]fleet.ProviderSnapshot, error) {
	return readAll(ctx, e.ProviderNames, more, e.Status)
}

// readAtOnce is how many entities are read at once.
const readAtOnce = 32

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
	wait.ForAll(names, readAtOnce, func(n int, name string) { all[n], failed[n] = read(ctx, name) })
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

// Cordon has nothing new made on a provider, or again; it starts the entity of one that does not run, to remember it.
// It returns what the provider has published since, once that says so: until then, or until ctx ends, it waits.
// Idempotent. Needs a worker. Errors: fleet.ErrUnavailable, fleet.ErrOutcomeUnknown.
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

// Ensure starts a provider's entity when it does not run, and reports whether it did.
func (e *Entities) Ensure(ctx context.Context, provider string) (started bool, err error) {
	if _, err = e.Status(ctx, provider); !errors.Is(err, fleet.ErrNotRunning) {
		return false, nil
	}
	id := e.provider(provider)
	_, err = e.temporal.ExecuteWorkflow(ctx, *e.entity(id, "provider "+provider), workflows.TypeProvider,
		workflows.NewEntity(provider))
	return err == nil, e.fromTemporal(id, err)
}
