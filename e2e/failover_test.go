package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// hurried holds the budgets of the suite "failover". They are long enough for a lab on a slow machine, and short enough
// for the test to see them end.
const hurried = `  budgets: {peer: 20s, network: 40s, join: 25s, total: 2m30s}
`

const hurriedTotal = 150 * time.Second

// TestFailover is the suite "failover". The first provider refuses, hangs or dies at each stage. The instance becomes
// Ready on the second provider before its deadline, and CA sees no error. The log names the failure of the first
// provider. When this provider is healthy again, it has no object of ours.
func TestFailover(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 43*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "failover", groups+hurried, offers)
	offload(ctx, newSteps(t), s.consumer)
	parts := []part{
		{"CancelledPeeringWaitsForTheFinalizer", cancelledBehindFinalizer},
		{"ResourcesRefusedOnASharedPeering", resourcesRefused},
		{"NoneLeft", noneLeft},
	}
	if s.gateways {
		parts = append(parts, part{"EndpointUnreachable", endpointUnreachable})
	}
	for _, f := range failings(s) {
		parts = append(parts, part{f.name, f.run})
	}
	runParts(ctx, t, s, parts)
}

// failing is one fault of the first provider. The fault prevents the creation of a node.
type failing struct {
	name  string
	stage backend.Stage // the stage that does not complete; empty: a refusal
	words string        // Liqo's own message; the worker's message where Liqo has none
	// sabotage prepares the fault. The end of the test reverts the fault unless repair was called.
	sabotage func(ctx context.Context, r *run) sabotage
}

// sabotage is an active fault; both functions may be nil.
type sabotage struct {
	begun  func(ctx context.Context) // waits until the fault has had an effect
	repair func(ctx context.Context) // makes the provider healthy again
}

func (f failing) run(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	sab := f.sabotage(ctx, r)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	if sab.begun != nil {
		sab.begun(ctx)
	}
	ids := r.readyOnSecond(ctx)
	words := []string{f.words}
	if f.stage != "" {
		words = append(words, "waiting for "+string(f.stage)+":")
	}
	assert.NoError(t, r.named(ids[0], words...))
	r.until(ctx, "pods running", time.Minute, func(ctx context.Context) error {
		return running(ctx, s.consumer, "work", 2)
	})
	sab.repair(ctx)
	r.firstForgets(ctx)
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// readyOnSecond requires that the one instance is Ready on the second provider before its deadline.
func (r *run) readyOnSecond(ctx context.Context) []string {
	r.t.Helper()
	begun := time.Now()
	ids := r.scaledOut(ctx, 1)
	require.Less(r.t, time.Since(begun), hurriedTotal, "inside its deadline")
	node, err := r.s.consumer.node(ctx, ids[0])
	require.NoError(r.t, err)
	require.Equal(r.t, r.s.providers[1].name, node.Labels["liqo.io/remote-cluster-id"])
	require.True(r.t, strings.HasSuffix(node.Name, "-2"), "the second attempt, not %s", node.Name)
	return ids
}

// named reads from the log why the first attempt of an instance ended. It returns an error unless this reason
// contains the given words.
func (r *run) named(id string, words ...string) error {
	e, err := r.s.givenUp(instanceName(id), 1)
	if err != nil {
		return err
	}
	fmt.Printf("FAILOVER %s: %s\n", r.t.Name(), e)
	return names(e.Failure, words...)
}

// firstForgets waits until the first provider has no object of ours and gets none for a while. If the provider
// refuses us, it first lifts this refusal.
func (r *run) firstForgets(ctx context.Context) {
	r.t.Helper()
	first := r.s.providers[0]
	forgotten := func(ctx context.Context) error { return clean(ctx, first) }
	r.peeringEnds(ctx, first)
	r.until(ctx, "first provider clean", time.Minute, forgotten)
	r.during(ctx, "first provider stays clean", 2*time.Second, forgotten)
}
