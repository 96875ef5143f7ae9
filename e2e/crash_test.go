package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/player"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/failpoint"
)

// envSeed is the environment variable with the seed of TestCrash. Without it, or with 0, the test draws a random
// seed.
const envSeed = "LIQO_AUTOSCALER_E2E_SEED"

// crashGroups has two groups, each with one provider. At any time, one life (a node's creation and removal) runs on
// each provider.
const crashGroups = `
hub: lab
nodeGroups:
- id: for-provider1
  max: 3
  shape: {cpu: "2", memory: 4Gi, pods: "20", ephemeral-storage: 10Gi}
  selector: {matchLabels: {lives: on-provider1}}
- id: for-provider2
  max: 3
  shape: {cpu: "2", memory: 4Gi, pods: "20", ephemeral-storage: 10Gi}
  selector: {matchLabels: {lives: on-provider2}}
`

const crashOffers = `
offers:
- name: first
  credentials: {kubeconfigFile: $ACCOUNTS/provider1.kubeconfig}
  lendable: {cpu: "8", memory: 16Gi, pods: "100", ephemeral-storage: 100Gi}
  labels: {lives: on-provider1}
  lingerSeconds: 0
  maxNodes: $MAX_NODES
  network: {mode: $NETWORK}
- name: second
  credentials: {kubeconfigFile: $ACCOUNTS/provider2.kubeconfig}
  lendable: {cpu: "8", memory: 16Gi, pods: "100", ephemeral-storage: 100Gi}
  labels: {lives: on-provider2}
  lingerSeconds: 0
  maxNodes: $MAX_NODES
  network: {mode: $NETWORK}
`

// lifeLimit is the time limit for the creation of a Node, and for its removal. It is long, because the test does not
// check how long they take. The removal may be slow: if Liqo has not yet removed the last slice, the peering counts
// as in use and stays for five minutes.
const lifeLimit = 12 * time.Minute

// TestCrash is the crash matrix on real Liqo. A life is the creation and removal of a node with its peering. The test
// first records all writes of a life to the API servers of the consumer and the provider. Each of these writes has
// two points: before and after the write. In each further life the worker is killed by SIGKILL at up to three points.
// Many lives together cover all points. A kill affects the lives on both providers.
func TestCrash(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 75*time.Minute)
	defer cancel()
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	if err != nil || seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	t.Logf("seed %d; SEED=%d repeats it", seed, seed)
	d := &doors{}
	s := newStack(ctx, t, "crash", crashGroups, crashOffers, withoutCA, withDoors(d))
	offload(ctx, newSteps(t), s.consumer)
	c := &crash{s: s, doors: d, matrix: failpoint.New(seed, 0)}
	began := time.Now()
	c.lives(t, "Undisturbed", func(t *testing.T, p *cluster) {
		require.NoError(t, deploy(ctx, s.consumer, "work-"+p.name, 1, "100m", map[string]string{labelProvider: p.name}))
		for range 2 {
			life := failpoint.Undisturbed()
			c.undisturbed(life)
			c.live(ctx, t, p, life)
		}
	})
	require.False(t, t.Failed(), "the way without kills")
	c.matrix.Derive("liqo", c.seen...)
	t.Logf("%d effects: %s", len(c.seen[0].Effects()), strings.Join(c.seen[0].Effects(), ", "))
	c.lives(t, "Killed", func(t *testing.T, p *cluster) {
		for !t.Failed() {
			life := c.matrix.Deal("liqo", 3)
			if life == nil {
				return
			}
			c.live(ctx, t, p, life)
		}
	})
	points, kills := c.matrix.Count()
	unreached := c.matrix.Unreached()
	fmt.Printf("CRASH liqo failpoints=%d kills=%d lives=%d converged=%d lost=%d leaked=%d double=%d unreached=%d seed=%d "+
		"all=%.0fs\n", points, kills, c.count, c.count-c.lost-c.leaked-c.double, c.lost, c.leaked, c.double, len(unreached),
		seed, time.Since(began).Seconds())
	t.Logf("no process was killed at %s", strings.Join(unreached, "; "))
	require.GreaterOrEqual(t, points, 20, "the lives had hardly any effects")
}

// crash is one run of the matrix.
type crash struct {
	s      *stack
	doors  *doors
	matrix *failpoint.Matrix

	mu                          sync.Mutex
	seen                        []*failpoint.Life
	count, lost, leaked, double int
}

func (c *crash) undisturbed(life *failpoint.Life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, life)
}

// lives runs the function do on both providers concurrently.
func (c *crash) lives(t *testing.T, name string, do func(*testing.T, *cluster)) {
	t.Run(name, func(t *testing.T) {
		for _, p := range c.s.providers {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				do(t, p)
			})
		}
	})
}

// live runs one life on a provider: CA wants one node, and then none.
func (c *crash) live(ctx context.Context, t *testing.T, p *cluster, life *failpoint.Life) {
	t.Helper()
	c.doors.begin(p.name, life)
	defer c.doors.begin(p.name, nil)
	began := time.Now()
	a := player.Of(t, "for-"+p.name, c.s.client)
	a.Wanted = 1
	var seen player.Picture
	there := c.until(ctx, a, &seen, func(ctx context.Context) error {
		if len(seen.Running) == 0 {
			return fmt.Errorf("%v", seen)
		}
		for id := range seen.Running {
			if _, err := c.s.consumer.node(ctx, id); err != nil {
				return err
			}
		}
		return running(ctx, c.s.consumer, "work-"+p.name, 1)
	})
	double := len(seen.Listed) > 1 || p.count(ctx, resourceSlices, 1) != nil
	ready := time.Since(began)
	a.Wanted = 0
	empty := c.until(ctx, a, &seen, func(ctx context.Context) error {
		if seen.Target > 0 || len(seen.Listed) > 0 {
			return fmt.Errorf("%v", seen)
		}
		return errors.Join(clean(ctx, p), onlyOf(p.name, clean(ctx, c.s.consumer)))
	})
	t.Logf("a life on %s: %.1f s to its node, %.1f s in all", p.name, ready.Seconds(), time.Since(began).Seconds())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	switch {
	case there != nil:
		c.lost++
		t.Errorf("lost: no node in %s: %v", lifeLimit, there)
	case double:
		c.double++
		t.Errorf("double: %v, and on the provider: %v", seen, p.count(ctx, resourceSlices, 1))
	case empty != nil:
		c.leaked++
		t.Errorf("leaked: something is left after %s: %v", lifeLimit, empty)
	}
}

// until runs CA's loops until the condition holds.
func (c *crash) until(ctx context.Context, a *player.Player, seen *player.Picture,
	condition func(context.Context) error) error {
	return testkit.Poll(ctx, lifeLimit, pollEvery, func(ctx context.Context) (err error) {
		if *seen, err = a.Look(); err != nil {
			return err
		}
		if len(seen.Failed) > 0 {
			return a.Remove(seen.Failed)
		}
		if err := a.Loop(); err != nil {
			return err
		}
		return condition(ctx)
	})
}

// onlyOf returns the errors that concern a provider.
func onlyOf(provider string, all error) error {
	if all == nil {
		return nil
	}
	var found []error
	for line := range strings.SplitSeq(all.Error(), "\n") {
		if strings.Contains(line, provider) || !strings.HasPrefix(line, lab.Consumer+": ") {
			found = append(found, errors.New(line))
		}
	}
	return errors.Join(found...)
}
