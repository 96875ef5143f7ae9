package conformance

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// site is a provider under test. It breaks one rule: it gives wrong answers while this rule is checked, and correct
// answers otherwise.
type site struct {
	*memory
	clock atomic.Int64 // in nanoseconds
	rule  atomic.Value // the rule that is being checked
}

func (s *site) now() time.Time         { return time.Unix(0, s.clock.Load()) }
func (s *site) passes(d time.Duration) { s.clock.Add(int64(d)) }

// check runs all rules. While the named rule is checked, the provider gives the wrong answer broken.
func (s *site) check(t *testing.T, rule string, broken breaks) map[string]Result {
	t.Helper()
	s.rule.Store("")
	conn := wired{s.memory, func(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
		right grpc.UnaryHandler) (any, error) {
		if broken == nil || s.rule.Load() != rule {
			return right(ctx, req)
		}
		return broken(s, ctx, req, right)
	}}
	results, err := Check(t.Context(), conn.client(), Options{Group: "cpu", Second: "gpu", Timeout: time.Minute, Settle: 1,
		Clock: s.now, onRule: func(id string) { s.rule.Store(id) }})
	require.NoError(t, err)
	out := map[string]Result{}
	for _, r := range results {
		out[r.ID] = r
	}
	require.Len(t, out, len(Rules()), "ids are unique")
	return out
}

// breaks returns the wrong answer of a broken provider to a call.
type breaks func(s *site, ctx context.Context, req any, right grpc.UnaryHandler) (any, error)

func TestCorrectProviderPassesAllRules(t *testing.T) {
	s := &site{memory: newMemory()}
	for id, r := range s.check(t, "", nil) {
		require.Equal(t, Passed, r.Outcome, "%s: %s", id, r.Seen)
	}
	require.Len(t, s.counted("cpu"), 1)
	require.Len(t, s.counted("gpu"), 2)
}

// Each rule fails on the provider that breaks it, and every other rule passes on that provider.
func TestEachRuleFailsOnItsBreakOnly(t *testing.T) {
	for _, rule := range Rules() {
		require.NotEmpty(t, broken[rule.ID], "rule %s has never been seen to fail", rule.ID)
		require.True(t, strings.HasSuffix(rule.Demands, ".") && rule.Source != "" && rule.Fix != "", rule.ID)
	}
	for id, list := range broken {
		for what, how := range list {
			t.Run(id+"/"+what, func(t *testing.T) {
				s := &site{memory: newMemory()}
				for other, r := range s.check(t, id, how) {
					want := Passed
					if other == id {
						want = Failed
					}
					require.Equal(t, want, r.Outcome, "%s: %s", other, r.Seen)
				}
			})
		}
	}
}

func TestUnusableGroupIsRefused(t *testing.T) {
	_, err := Check(t.Context(), wired{newMemory(), nil}.client(), Options{Group: "gpu"})
	require.ErrorContains(t, err, "is creating 1 instances")
	_, err = Check(t.Context(), wired{newMemory(), nil}.client(), Options{Group: "other"})
	require.ErrorContains(t, err, "node group other: NodeGroups does not list it")
}
