package observer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// When two successive rounds observe a fault of a provider, the fault becomes a part of the provider's standing (its
// published faults). A fault on our own side does not become a part of the standing.
func TestFindingOfTwoRoundsBecomesTheStanding(t *testing.T) {
	for name, c := range map[string]struct {
		seen backend.Observation
		err  error
		want *fleet.Standing
	}{
		"well": {},
		"closed": {seen: backend.Observation{Tenant: fleet.RefusingDrained, Message: "words"},
			want: &fleet.Standing{Tenant: fleet.RefusingDrained, Message: "words"}},
		"long words": {seen: backend.Observation{Tenant: fleet.RefusingDrained, Message: strings.Repeat("x", 1<<20)},
			want: &fleet.Standing{Tenant: fleet.RefusingDrained, Message: strings.Repeat("x", 299) + "…"}},
		"no answer": {err: fmt.Errorf("milan: %w", backend.ErrUnreachable),
			want: &fleet.Standing{Access: fleet.AccessSilent, Message: "milan: provider unreachable"}},
		"hangs": {err: errHang,
			want: &fleet.Standing{Access: fleet.AccessSilent, Message: "hangs: provider unreachable"}},
		"401": {err: fmt.Errorf("%w: %w", backend.ErrUnreachable, backend.ErrCredentials),
			want: &fleet.Standing{Access: fleet.AccessRefused, Message: "provider unreachable: credentials refused"}},
		"403": {err: fmt.Errorf("%w: %w", backend.ErrDenied, backend.ErrCredentials),
			want: &fleet.Standing{Access: fleet.AccessRefused, Message: "denied by the provider: credentials refused"}},
		"our own side":      {err: errors.New("no answer of our own API server")},
		"wrong credentials": {err: fmt.Errorf("another cluster: %w", backend.ErrInvalid)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
			h.found, h.others = []fleet.Found{whole(attempt("a-t0-1"))}, true
			h.seen["milan"], h.silent["milan"] = c.seen, c.err
			require.NoError(t, h.rounds(t, 2))
			got := h.rows["provider/milan"].Standing
			if got != nil {
				got.Since = time.Time{}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// This cluster counts as cut off when neither a provider nor another cluster answers. It also counts as cut off when
// the observer cannot find out whether another cluster answers.
func TestSilenceOfAllClustersIsIsolation(t *testing.T) {
	for name, c := range map[string]struct {
		others  bool
		witness error
		want    fleet.Access
	}{
		"another cluster answers": {others: true, want: fleet.AccessSilent},
		"no cluster answers":      {want: fleet.AccessIsolated},
		"cannot ask":              {others: true, witness: errors.New("no answer"), want: fleet.AccessIsolated},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
			h.others, h.silent["milan"] = c.others, backend.ErrUnreachable
			if c.witness != nil {
				h.fails["witness"] = c.witness
			}
			require.NoError(t, h.rounds(t, 2))
			require.Equal(t, c.want, h.rows["provider/milan"].Standing.Access)
		})
	}
}

// unready returns a hub whose provider is dead. The Node of its instance is not ready, and the instance is lost after a
// minute.
func unready() *hub {
	minute := fleet.Term{Duration: metav1.Duration{Duration: time.Minute}}
	dead := row("a-t0-1", fleet.Ready)
	dead.NotReady = true
	h := newHub().with([]fleet.InstanceView{dead}, "lca-a-t0-1-1")
	h.groups["a"].Spec.Budgets.Unready = &minute
	found := whole(attempt("a-t0-1"))
	found.Ready = false
	h.found, h.others, h.silent["milan"] = []fleet.Found{found}, true, errHang
	return h
}

// lostAfter runs the observer until it reports to the group that the instance is lost. It returns the time until then.
func lostAfter(t *testing.T, h *hub, run func(t *testing.T, o *observer.Observer, until func() bool)) (d time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		run(t, h.observer(), func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			d = time.Since(began)
			return len(h.rows["group/a"].Lost) > 0 || d > time.Hour
		})
	})
	return d
}

// The instance of a dead provider is lost within budgets.unready plus two minutes. For this, the observer runs rounds
// more often than once a minute.
func TestDeadProvidersInstanceIsLost(t *testing.T) {
	h := unready()
	d := lostAfter(t, h, func(t *testing.T, o *observer.Observer, until func() bool) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); o.Run(ctx) }()
		for !until() {
			time.Sleep(time.Second) // time in the synctest bubble
		}
		stop()
		<-done
	})
	require.GreaterOrEqual(t, d, 55*time.Second)
	require.GreaterOrEqual(t, len(h.looked), 4, "a round each 20 s")
	require.LessOrEqual(t, d, 3*time.Minute)
}

// A dead provider is found even when each leader leads for less than half a minute, because each leader continues
// with the evidence of its predecessor. Old evidence does not count.
func TestDeadProviderIsFoundBySuccessiveLeaders(t *testing.T) {
	for between, found := range map[time.Duration]bool{10 * time.Second: true, 5 * time.Minute: false} {
		memory := observer.File(t.TempDir() + "/memory")
		h := unready()
		d := lostAfter(t, h, func(t *testing.T, o *observer.Observer, until func() bool) {
			for !until() {
				o = h.observer()
				o.Memory = aged{memory, &saved}
				ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
				o.Run(ctx)
				stop()
				time.Sleep(between)
			}
		})
		require.Equal(t, found, d < time.Hour, "%s: %s", between, d)
	}
}

// saved is the time at which the memory was last saved. The test does not use the time of the file, because this time
// does not follow the clock of the synctest bubble.
var saved time.Time

type aged struct {
	observer.File
	at *time.Time
}

func (a aged) Save(ctx context.Context, document []byte) error {
	*a.at = time.Now()
	return a.File.Save(ctx, document)
}

func (a aged) Load(ctx context.Context) ([]byte, time.Duration, error) {
	document, age, err := a.File.Load(ctx)
	if age >= 0 {
		age = time.Since(*a.at)
	}
	return document, age, err
}

// The term of a new leader is higher than every term that it reads. A leader that reads a higher term stops.
func TestLeaderWithALowerTermStops(t *testing.T) {
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)})
	g := h.groups["a"]
	g.Term = 41
	h.groups["a"] = g
	synctest.Test(t, func(t *testing.T) {
		o := h.observer()
		leads(t, o, func(next func() error) {
			require.Equal(t, fleet.RoundID{Term: 42, Number: 1}, h.rows["group/a"].Round)
			h.between(func() {
				g.Term = 43
				h.groups["a"] = g
			})
			require.ErrorContains(t, next(), "higher term")
			require.Empty(t, h.told)
			synctest.Wait()
			require.False(t, o.Progress().Leads)
		})
	})
}

// A leader that has completed no round for two minutes gives up its lead, so that another worker may try.
func TestLeaderWithoutACompleteRoundGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		h.fails["list"] = errors.New("no answer")
		began := time.Now()
		h.observer().Run(t.Context())
		require.GreaterOrEqual(t, time.Since(began), 2*time.Minute)
		require.LessOrEqual(t, time.Since(began), 4*time.Minute)
		require.Empty(t, h.told)
	})
}

// A round during which the process was frozen sends no signals, because its data are old.
func TestFrozenRoundSendsNoSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)}, "lca-a-t0-1-1")
		leads(t, h.observer(), func(next func() error) {
			h.between(func() { h.slow = 5 * time.Minute })
			require.Error(t, next())
			require.Empty(t, h.told)
		})
	})
}

// A leader that cannot read its predecessor's memory starts without it.
func TestLeaderStartsWithoutAnUnreadableMemory(t *testing.T) {
	path := t.TempDir() + "/memory"
	noError(t, os.WriteFile(path, []byte("{"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready)})
		o := h.observer()
		o.Memory = observer.File(path)
		leads(t, o, func(func() error) { require.NotEmpty(t, h.told) })
	})
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(document), `"term":1`)
}
