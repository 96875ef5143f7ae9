package observer_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// hub is a hub in memory, with its entities, its cluster and its providers. Tests change it between rounds.
type hub struct {
	mu        sync.Mutex
	groups    map[string]fleet.Snapshot
	providers map[string]fleet.ProviderSnapshot
	unlisted  bool             // Temporal's index lists nothing
	fails     map[string]error // errors by request, such as "group/a", "list", "peers", "offers" or "index"
	trip      time.Duration    // duration of each request to Temporal
	slow      time.Duration    // duration of a list of objects

	found  []fleet.Found
	peers  []fleet.Provider
	offers []fleet.Offer
	seen   map[string]backend.Observation // by provider
	silent map[string]error               // errors of observations, by provider; errHang hangs
	others bool                           // another cluster answers

	left    map[string][]fleet.Orphan // by provider; a provider without an entry does not answer
	removed []string                  // UIDs
	told    []string
	rows    map[string]fleet.Differences // the last signal to each entity
	read    []string
	looked  []fleet.Provider
	ensured []string
	cordons []string
	holds   []fleet.HoldRequest
	events  []string
	pods    []*corev1.Pod       // pods that Liqo offloads
	claims  map[string][]string // by provider: the claims whose volume exists
}

// errHang is the error of a provider that accepts connections and never answers.
var errHang = fmt.Errorf("hangs: %w", backend.ErrUnreachable)

func newHub() *hub {
	return &hub{groups: map[string]fleet.Snapshot{}, providers: map[string]fleet.ProviderSnapshot{},
		fails: map[string]error{}, seen: map[string]backend.Observation{}, silent: map[string]error{},
		rows: map[string]fleet.Differences{}}
}

// The method `with` adds a group with these rows (a row is the state of an instance), and a provider milan with these
// holds.
func (h *hub) with(rows []fleet.InstanceView, holds ...string) *hub {
	h.groups["a"] = fleet.Snapshot{Group: "a", Epoch: "t0", Revision: 7, Instances: rows,
		Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}}}
	h.providers["milan"] = fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established, Revision: 9, Holds: holds,
		Offer: &fleet.Offer{Credentials: file("milan")}}
	return h
}

func file(name string) fleet.Credentials { return fleet.Credentials{KubeconfigFile: name} }

// row returns a row of an instance on milan.
func row(name string, phase fleet.Phase) fleet.InstanceView {
	return fleet.InstanceView{Name: name, Phase: phase, Attempt: 1, Provider: "milan", Counts: phase == fleet.Ready}
}

func attempt(instance string) fleet.Attempt {
	return fleet.Attempt{Group: "a", Instance: instance, Number: 1, Provider: fleet.Provider{ID: "milan"}}
}

// whole returns a complete node of the attempt.
func whole(at fleet.Attempt) fleet.Found {
	return fleet.Found{Attempt: at, Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true}
}

// ask records a request and waits as long as a request to Temporal takes.
func (h *hub) ask(ctx context.Context, what string) error {
	h.mu.Lock()
	h.read = append(h.read, what)
	err, trip := h.fails[what], h.trip
	h.mu.Unlock()
	if trip > 0 {
		select {
		case <-time.After(trip):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", fleet.ErrUnavailable, ctx.Err())
	}
	return err
}

func get[T any](h *hub, all map[string]T, name string) (one T, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one, ok := all[name]
	if !ok {
		return one, fmt.Errorf("%s %w: %w", name, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	return one, nil
}

func (h *hub) Group(ctx context.Context, name string) (fleet.Snapshot, error) {
	if err := h.ask(ctx, "group/"+name); err != nil {
		return fleet.Snapshot{}, err
	}
	return get(h, h.groups, name)
}

func (h *hub) Status(ctx context.Context, id string) (fleet.ProviderSnapshot, error) {
	if err := h.ask(ctx, "provider/"+id); err != nil {
		return fleet.ProviderSnapshot{}, err
	}
	return get(h, h.providers, id)
}

func names[T any](h *hub, all map[string]T) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unlisted {
		return nil
	}
	return slices.Sorted(maps.Keys(all))
}

func (h *hub) GroupNames(ctx context.Context) ([]string, error) {
	return names(h, h.groups), h.ask(ctx, "index")
}

func (h *hub) ProviderNames(ctx context.Context) ([]string, error) {
	return names(h, h.providers), h.ask(ctx, "index")
}

func (h *hub) Ensure(ctx context.Context, id string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ensured = append(h.ensured, id)
	return true, h.fails["ensure "+id]
}

func (h *hub) tell(id string, d fleet.Differences) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, id)
	h.rows[id] = d
	return h.fails["tell "+id]
}

func (h *hub) GroupDiffers(_ context.Context, name string, d fleet.Differences) error {
	return h.tell("group/"+name, d)
}

func (h *hub) ProviderDiffers(_ context.Context, id string, d fleet.Differences) error {
	return h.tell("provider/"+id, d)
}

func (h *hub) Holds(_ context.Context, id string, requests ...fleet.HoldRequest) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = append(h.holds, requests...)
	return h.fails["tell provider/"+id]
}

func (h *hub) List(context.Context, backend.Scope) ([]fleet.Found, error) {
	h.mu.Lock()
	slow := h.slow
	h.mu.Unlock()
	<-time.After(slow)
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.found), h.fails["list"]
}

func (h *hub) Peers(context.Context, string) ([]fleet.Provider, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.peers), h.fails["peers"]
}

func (h *hub) Offers(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.offers, nil, h.fails["offers"]
}

func (h *hub) Observe(ctx context.Context, p fleet.Provider) (backend.Observation, error) {
	h.mu.Lock()
	h.looked = append(h.looked, p)
	seen, err := h.seen[p.ID], h.silent[p.ID]
	h.mu.Unlock()
	if err == errHang {
		<-ctx.Done()
	}
	return seen, err
}

func (h *hub) Cordon(_ context.Context, at fleet.Attempt, cordoned bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cordons = append(h.cordons, map[bool]string{true: "cordon ", false: "uncordon "}[cordoned]+at.ObjectName())
	return h.fails["cordon"]
}

func (h *hub) Leftovers(_ context.Context, p fleet.Provider) ([]fleet.Orphan, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left, answers := h.left[p.ID]
	if !answers {
		return nil, backend.ErrUnreachable
	}
	return slices.Clone(left), nil
}

func (h *hub) RemoveLeftover(_ context.Context, o fleet.Orphan) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = append(h.removed, o.UID)
	return h.fails["remove"]
}

func (h *hub) Record(n activities.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, string(n.Reason)+": "+n.Message)
}

// observer returns an observer of the hub.
func (h *hub) observer() *observer.Observer {
	return &observer.Observer{Entities: h, Messages: h, Backend: h, Catalog: h, Events: h,
		Witness: func(context.Context, []string) (bool, error) { return h.others, h.fails["witness"] },
		Logger:  slog.New(slog.DiscardHandler), Conditions: &activities.Conditions{}, Pods: &observer.Pods{}}
}

// The method `between` changes the hub between two rounds, and clears the recorded requests.
func (h *hub) between(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told, h.read, h.looked, h.ensured, h.cordons = nil, nil, nil, nil, nil
	h.rows = map[string]fleet.Differences{}
	if change != nil {
		change()
	}
}

// leads runs an observer in the synctest bubble of the test. After the first round, each call of the function `next`
// runs one more round.
func leads(t *testing.T, o *observer.Observer, play func(next func() error)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Run(ctx)
	}()
	synctest.Wait()
	play(func() error {
		bounded, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		return o.RoundNow(bounded)
	})
	stop()
	<-done
}

// rounds runs n rounds, and returns the last error.
func (h *hub) rounds(t *testing.T, n int) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		leads(t, h.observer(), func(next func() error) {
			for range n - 1 {
				h.between(nil)
				err = next()
			}
		})
	})
	return err
}

func noError(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}
