package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/clock"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// clocks holds the offsets of the wrong clocks of our processes, by the processes' names. All other clocks are right.
type clocks map[string]time.Duration

// withClocks makes processes run with these wrong clocks.
func withClocks(c clocks) func(*stack) { return func(s *stack) { s.clocks = c } }

// clockOff is the suffix of the name of a binary whose clock can be wrong.
const clockOff = "-clock-off"

// build compiles one of our programs into the folder. When the suite has wrong clocks, it also compiles a second binary
// whose clock can be wrong. It returns the path of the first binary.
func (s *stack) build(ctx context.Context, program, bin string) string {
	s.t.Helper()
	path := filepath.Join(bin, program)
	if s.clocks != nil {
		overlay, err := clock.Overlay(s.t.TempDir())
		require.NoError(s.t, err)
		buildProduct(ctx, s.t, program, path+clockOff, overlay)
	}
	return buildProduct(ctx, s.t, program, path)
}

// clocksWereOff checks the logs of the processes with wrong clocks: the time in each line has the set offset.
func clocksWereOff(_ context.Context, t *testing.T, s *stack) {
	for name, off := range s.clocks {
		log, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
		require.NoError(t, err)
		lines := 0
		for line := range strings.Lines(string(log)) {
			var said struct{ Time time.Time }
			require.NoError(t, json.Unmarshal([]byte(line), &said), line)
			require.WithinRange(t, said.Time, s.begun.Add(off), time.Now().Add(off), "%s: %s", name, line)
			if lines++; lines == 1 {
				fmt.Printf("CLOCK %s is off by %s: began after %s, and says %s\n", name, off,
					s.begun.UTC().Format(time.RFC3339), strings.TrimSpace(line))
			}
		}
		require.NotZero(t, lines, name)
	}
}

// readBy runs a consumer with a wrong clock. Like the worker, the consumer gets all providers' offers from the
// discovery server, and the offers expire by the consumer's own clock.
func (s *stack) readBy(ctx context.Context, off time.Duration) {
	s.t.Helper()
	before := time.Now().Add(off)
	out, err := s.try(ctx, append(slices.Clone(s.env), clock.Off(off)), nil, s.binary+clockOff,
		slices.Concat([]string{"offers", "--kubeconfig", filepath.Join(s.accounts, lab.Consumer+".kubeconfig"),
			"--hub", hub, "--output", "json"}, s.offerServer.worker)...)
	require.NoError(s.t, err)
	var read show.Offers
	require.NoError(s.t, json.Unmarshal(out, &read), "%s", out)
	require.Empty(s.t, read.Problems)
	require.Len(s.t, read.Offers, len(s.providers))
	for _, o := range read.Offers {
		require.True(s.t, o.Current != nil && *o.Current, o.Name)
		require.NotNil(s.t, o.Expires, o.Name)
		require.WithinRange(s.t, *o.Expires, before, time.Now().Add(off+time.Hour), "%s for a clock off by %s", o.Name, off)
	}
}
