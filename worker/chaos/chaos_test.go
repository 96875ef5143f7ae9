package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

var (
	duration = flag.Duration("chaos", 0, "how long the monkey works; 0: TestChaos is skipped")
	seed     = flag.Uint64("chaos-seed", 0, "seed of the monkey and of the driver; 0: another one each time")
	binary   = flag.String("chaos-binary", "", "binary of the product; empty: it is built")
	keep     = flag.String("chaos-dir", "",
		"directory for logs, world and database, which are kept there; empty: a temporary one, kept after a failure")
)

// restLimit bounds the wait until nothing changes any more. A group detects a terminated scale-out after two minutes,
// the next scale-out may use its budget of another minute, and an undo retries at intervals of up to a minute.
const restLimit = 5 * time.Minute

// Processes die, hang and are cut off, providers fail, and operators cancel and terminate workflows. Every answer to CA
// stays true, and at the end no object is left.
func TestChaos(t *testing.T) {
	if *duration <= 0 {
		t.Skip("run make chaos")
	}
	chaos(t, drawn(), *duration, false)
}

// TestSmoke is a short run with a fixed seed. It causes only faults that the product detects quickly (monkey.gentle).
// It shows that the suite itself still works between two runs of `make chaos`.
func TestSmoke(t *testing.T) {
	if testing.Short() || *duration > 0 {
		t.Skip("a run of its own takes half a minute")
	}
	chaos(t, 1, 8*time.Second, true)
}

// cramped holds the groups and providers of the chaos suite. The providers never have capacity for all groups.
var cramped = layout{
	groups: `defaults:
  shape: {cpu: "2", memory: 4Gi, pods: "110"}
  budgets: {peer: 20s, network: 20s, join: 20s, total: 60s, drain: 5s}
nodeGroups:
- {id: red, min: 0, max: 4}
- {id: blue, min: 0, max: 3}
`,
	most: map[string]int{"red": 4, "blue": 3},
	providers: []simworld.Provider{
		{Name: "p1", Offer: "lendable: {cpu: 8, memory: 16Gi, pods: 440}, price: 1, lingerSeconds: 0"},
		{Name: "p2", Offer: "lendable: {cpu: 4, memory: 8Gi, pods: 220}, price: 2, lingerSeconds: 2"},
		{Name: "p3", Offer: "lendable: {cpu: 16, memory: 32Gi, pods: 880}, price: 3, lingerSeconds: 0"},
	},
	delays: sim.Delays{
		Peer: 150 * time.Millisecond, Join: 200 * time.Millisecond, Leave: 100 * time.Millisecond,
		Unpeer: 100 * time.Millisecond, Register: 500 * time.Millisecond,
	},
	workers: 2,
}

// chaos runs the suite once.
func chaos(t *testing.T, with uint64, length time.Duration, gentle bool) {
	t.Logf("seed %d, to be had again with: go test ./worker/chaos -run TestChaos -v -chaos %s -chaos-seed %d", with,
		length, with)
	ctx, cancel := context.WithTimeout(context.Background(), length+3*restLimit)
	defer cancel()
	r := newRun(ctx, t, with, cramped)
	play(ctx, r.d, &monkey{s: r.s, rng: rand.New(rand.NewPCG(with, 2)), m: r.m, gentle: gentle}, length)
	r.quiet(ctx, true)
	r.end(ctx, "CHAOS")
}

// play lets the monkey and the driver run until the time has passed or an invariant is violated. It returns when all
// faults are repaired.
func play(ctx context.Context, d *driver, k *monkey, length time.Duration) {
	playing, stop := context.WithTimeout(ctx, length)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { k.run(playing, ctx) })
	both.Go(func() { d.run(playing) })
	both.Go(func() {
		for wait.For(playing, 200*time.Millisecond) {
			d.s.healthy(d.m)
			if len(d.m.verdict()) > 0 {
				stop()
			}
		}
	})
	both.Wait()
}
