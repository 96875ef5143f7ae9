package activities_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// run runs an activity in the same way as a worker, and returns the result.
func run[T any](t *testing.T, do, arg any, change ...func(*testsuite.TestActivityEnvironment)) (out T, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	for _, f := range change {
		f(env)
	}
	env.RegisterActivity(do)
	value, err := env.ExecuteActivity(do, arg)
	if err == nil && value.HasValue() {
		err = value.Get(&out)
	}
	return out, err
}

// ended runs an activity without a result.
func ended(t *testing.T, do, arg any, change ...func(*testsuite.TestActivityEnvironment)) error {
	t.Helper()
	_, err := run[any](t, do, arg, change...)
	return err
}

// offering is a catalog with fixed answers.
type offering struct {
	offers   []fleet.Offer
	problems []discovery.Problem
	err      error
}

func (o offering) Offers(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	return o.offers, o.problems, o.err
}

// messages records the sent messages. If fails contains the target of a message, the message returns an error.
type messages struct {
	mu      sync.Mutex
	views   []fleet.View
	holds   []fleet.HoldRequest
	reports []fleet.PeeringReport
	fails   map[string]error
}

func (m *messages) View(_ context.Context, group string, v fleet.View) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.views = append(m.views, v)
	return m.fails[group]
}

func (m *messages) Holds(_ context.Context, provider string, requests ...fleet.HoldRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds = append(m.holds, requests...)
	return m.fails[provider]
}

func (m *messages) Report(_ context.Context, provider string, r fleet.PeeringReport) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reports = append(m.reports, r)
	return m.fails[provider]
}

// entities serves fixed snapshots of entities.
type entities struct {
	providers []fleet.ProviderSnapshot
	before    fleet.ProviderSnapshot
	silent    bool // Before answers nothing
	err       error
	mu        sync.Mutex
	// asked lists the providers that Provider has read, in order. last holds the snapshots that Provider has returned,
	// and lastAt the times of these reads.
	asked  []string
	last   map[string]fleet.ProviderSnapshot
	lastAt map[string]time.Time
	// justStarted makes Provider return stale snapshots, which were read before the entities started.
	justStarted bool
	groups      []fleet.Snapshot
}

func (e *entities) Group(_ context.Context, name string) (fleet.Snapshot, error) {
	n := slices.IndexFunc(e.groups, func(g fleet.Snapshot) bool { return g.Group == name })
	if n < 0 {
		return fleet.Snapshot{}, fmt.Errorf("nodegroup/%s %w: %w", name, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	return e.groups[n], e.err
}

// records serves fixed records of the observer.
type records struct {
	groups   map[string]fleet.GroupRecord
	bills    money.Book
	cordoned []string
	saved    chan fleet.Position // receives the positions that Save stores
	err      error
}

func (r records) Save(_ context.Context, _ string, at fleet.Position) error {
	if r.err == nil {
		r.saved <- at
	}
	return r.err
}

func (r records) Bill(_ context.Context, group string) (money.Bill, bool, error) {
	bill, known := r.bills.Latest(group)
	return bill, known, r.err
}

func (r records) Group(_ context.Context, name string) (fleet.GroupRecord, bool, error) {
	one, known := r.groups[name]
	return one, known, r.err
}

func (r records) Cordoned(_ context.Context, provider string) (bool, error) {
	return slices.Contains(r.cordoned, provider), r.err
}

// booking returns a snapshot of group a, which books the instance a-t0-1 in phase Joining.
func booking() fleet.Snapshot {
	return fleet.Snapshot{Group: "a", Epoch: "t1", Revision: 7, Booked: 3, Instances: []fleet.InstanceView{
		{Name: "a-t0-1", Phase: fleet.Joining, State: fleet.StateCreating},
	}}
}

// running returns entities in which these providers run, or milan when no id is given. Group a also runs, with the
// snapshot that booking returns.
func running(ids ...string) *entities {
	if len(ids) == 0 {
		ids = []string{"milan"}
	}
	e := &entities{groups: []fleet.Snapshot{booking()}}
	for _, id := range ids {
		e.providers = append(e.providers, fleet.ProviderSnapshot{ID: id})
	}
	return e
}

func (e *entities) Provider(ctx context.Context, id string) (fleet.ProviderSnapshot, error) {
	if e.justStarted {
		return (&entities{}).Status(ctx, id)
	}
	s, err := e.Status(ctx, id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked = append(e.asked, id); e.last == nil {
		e.last, e.lastAt = map[string]fleet.ProviderSnapshot{}, map[string]time.Time{}
	}
	e.last[id], e.lastAt[id] = s, time.Now()
	return s, err
}

// Remembered returns the last snapshot that Provider has returned.
func (e *entities) Remembered(id string) (s fleet.ProviderSnapshot, age time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s, ok := e.last[id]; ok {
		return s, time.Since(e.lastAt[id])
	}
	return s, 1000 * time.Hour
}

func (e *entities) Status(_ context.Context, id string) (fleet.ProviderSnapshot, error) {
	n := slices.IndexFunc(e.providers, func(p fleet.ProviderSnapshot) bool { return p.ID == id })
	if n < 0 {
		return fleet.ProviderSnapshot{}, fmt.Errorf("provider/%s %w: %w", id, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	return e.providers[n], e.err
}

func (e *entities) Before(ctx context.Context, _ string) (fleet.ProviderSnapshot, error) {
	if e.silent { // Temporal limits list requests
		<-ctx.Done()
		return fleet.ProviderSnapshot{}, ctx.Err()
	}
	return e.before, e.err
}

// flows holds the existing workflows by id. A workflow without an entry is closed.
type flows struct {
	mu     sync.Mutex
	status map[string]activities.Status
	fails  map[string]error
	calls  []string
}

func (f *flows) record(verb, id string) (activities.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, verb+" "+id)
	return f.status[id], f.fails[id]
}

func (f *flows) Start(_ context.Context, s activities.Start) (bool, error) {
	status, err := f.record("start", s.ID)
	return status.Running || status.Completed, err
}

func (f *flows) Signal(_ context.Context, s activities.Signal) error {
	status, err := f.record("signal", s.ID)
	if err == nil && !status.Running {
		return fmt.Errorf("%s %w: %w", s.ID, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	return err
}

func (f *flows) Status(_ context.Context, id string) (activities.Status, error) {
	return f.record("status", id)
}

func (f *flows) Cancel(_ context.Context, id string) error {
	_, err := f.record("cancel", id)
	return err
}

func (f *flows) Terminate(_ context.Context, id, _ string) error {
	is, err := f.record("terminate", id)
	if is.Orphaned {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.status, id)
	}
	return err
}

// world is a backend with fixed objects. Its methods report progress, and then return a fixed result.
type world struct {
	backend.Backend
	found []fleet.Found
	peers []fleet.Provider
	err   error // the error that lists return
	verb  func(ctx context.Context) error
	after func() // called after the verb has ended

	answers []string // the credentials files for which Identify succeeds
	mu      sync.Mutex
}

func (w *world) Identify(_ context.Context, c fleet.Credentials) (string, error) {
	if slices.Contains(w.answers, c.KubeconfigFile) {
		return c.KubeconfigFile, nil
	}
	return "", backend.ErrUnreachable
}

func (w *world) List(ctx context.Context, scope backend.Scope) ([]fleet.Found, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return slices.DeleteFunc(slices.Clone(w.found), func(f fleet.Found) bool { return !scope.Contains(f.Attempt) }), w.err
}

func (w *world) Peers(_ context.Context, provider string) ([]fleet.Provider, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.peers),
		func(p fleet.Provider) bool { return provider != "" && p.ID != provider }), w.err
}

// breaks makes the lists fail from now on.
func (w *world) breaks(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *world) do(ctx context.Context, progress backend.Progress) error {
	progress(backend.StageSliceAuth, "asked milan")
	if w.after != nil {
		defer w.after()
	}
	if w.verb == nil {
		return nil
	}
	return w.verb(ctx)
}

func (w *world) Establish(ctx context.Context, _ fleet.Provider, p backend.Progress) error {
	return w.do(ctx, p)
}

func (w *world) RemovePeering(ctx context.Context, _ fleet.Provider, p backend.Progress) error {
	return w.do(ctx, p)
}

func (w *world) Join(ctx context.Context, _ backend.NodeSpec, p backend.Progress) (backend.Node, error) {
	return backend.Node{}, w.do(ctx, p)
}

func (w *world) Drain(ctx context.Context, _ fleet.Attempt, _ bool, p backend.Progress) error {
	return w.do(ctx, p)
}

func (w *world) Return(ctx context.Context, _ fleet.Attempt, p backend.Progress) error {
	return w.do(ctx, p)
}

// hangs waits until its context ends, as the methods of every backend do.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return &backend.StageError{Stage: backend.StageSliceAuth, Message: "no answer yet", Err: fmt.Errorf("%w: %w",
		ctx.Err(), context.Cause(ctx))}
}

func fails(err error) func(context.Context) error { return func(context.Context) error { return err } }

// attempt returns attempt 1 of an instance of group a on milan.
func attempt(instance string) fleet.Attempt {
	return fleet.Attempt{Group: "a", Instance: instance, Number: 1, Provider: fleet.Provider{ID: "milan"}}
}

// whole returns a complete node of the attempt.
func whole(at fleet.Attempt) fleet.Found {
	return fleet.Found{Attempt: at, Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true}
}
