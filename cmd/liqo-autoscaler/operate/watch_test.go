package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// publishedAs is the n-th snapshot of the group "standard", which has one instance.
func publishedAs(n int64, phase fleet.Phase) fleet.Snapshot {
	return fleet.Snapshot{Group: "standard", Epoch: "toozs0", Revision: n, Max: 4, Target: 1,
		At: time.Date(2026, 11, 20, 12, 0, int(n), 0, time.UTC), Instances: []fleet.InstanceView{
			{Name: "standard-toozs0-1", Phase: phase, Counts: true, Attempt: 1, Provider: "milan"}}}
}

// A watch prints each change, and one line when Temporal goes away and one when
// it is back.
func TestStreamSurvivesAnOutage(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var out, errOut testkit.Buffer
	w := &watcher{snapshots: make(chan fleet.Snapshot), heard: make(chan hearing), last: map[string]fleet.Snapshot{}}
	done := make(chan error, 1)
	go func() { done <- w.tell(ctx, stream{output: "table", out: &out, errOut: &errOut}) }()
	away := errors.New("list workflows: unavailable")
	w.snapshots <- publishedAs(1, fleet.Peering)
	w.heard <- hearing{err: away}
	w.heard <- hearing{"standard", errors.New("watch standard: unavailable")}
	w.heard <- hearing{err: away}
	w.heard <- hearing{}
	w.snapshots <- publishedAs(1, fleet.Peering) // as it was before
	w.snapshots <- publishedAs(2, fleet.Ready)
	stop()
	require.NoError(t, <-done)
	require.Equal(t, "error: list workflows: unavailable (trying again)\nthe node groups can be read again\n",
		errOut.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2, "%s", &out)
	require.Contains(t, lines[0], "Peering")
	require.Contains(t, lines[1], "Ready")
}
