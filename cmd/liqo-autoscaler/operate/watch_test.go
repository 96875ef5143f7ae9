package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// publishedAs is the n-th snapshot of the group "standard", which has one instance.
func publishedAs(n int64, phase fleet.Phase) fleet.Snapshot {
	return fleet.Snapshot{Group: "standard", Epoch: "toozs0", Revision: n, Max: 4, Target: 1,
		At: time.Date(2026, 11, 20, 12, 0, int(n), 0, time.UTC), Instances: []fleet.InstanceView{
			{Name: "standard-toozs0-1", Phase: phase, Counts: true, Attempt: 1, Provider: "milan"}}}
}

// Where it does not print to a terminal, a watch prints each change, and one line when Temporal goes away and one when
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

// On a terminal a watch draws in place; while nothing can be read it shows what it knows, and says since when.
func TestScreenSurvivesAnOutage(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	answers := make(chan error)
	var out testkit.Buffer
	s := &screen{title: "hub default", out: &out, wake: make(chan struct{}, 1),
		size: func() (int, int, error) { return 100, 30, nil },
		read: func(ctx context.Context, _ int) (show.Status, show.Offers, error) {
			select {
			case err := <-answers:
				if err != nil {
					return show.Status{}, show.Offers{}, err
				}
				return show.StatusOf(publishedAs(1, fleet.Peering)), show.Offers{}, nil
			case <-ctx.Done():
				return show.Status{}, show.Offers{}, ctx.Err()
			}
		}}
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	frames := func(n int) string {
		var last string
		testkit.Until(t, time.Minute, "it is drawn", func() error {
			all := strings.Split(out.String(), "\x1b[H")
			if last = all[len(all)-1]; len(all)-1 < n || !strings.HasSuffix(last, "\x1b[J") {
				return errors.New(out.String())
			}
			return nil
		})
		return last
	}
	answers <- nil
	require.Contains(t, frames(1), "standard-toozs0-1   Peering   milan")
	require.NotContains(t, frames(1), "not up to date")
	answers <- errors.New("list workflows:\nunavailable")
	require.Regexp(t, `not up to date since \d\d:\d\d:\d\d, trying again: list workflows: unavailable`, frames(2))
	require.Contains(t, frames(2), "standard-toozs0-1   Peering   milan", "as it was")
	require.NoError(t, s.changed(fleet.Snapshot{}, publishedAs(1, fleet.Peering)), "what is there at the start")
	require.NoError(t, s.changed(publishedAs(1, fleet.Peering), publishedAs(2, fleet.Ready)))
	answers <- nil
	require.NotContains(t, frames(3), "not up to date")
	require.Contains(t, frames(3), "12:00:02")
	stop()
	require.NoError(t, <-done)
	require.True(t, strings.HasSuffix(out.String(), "\n"), "the shell's prompt begins a line")
	require.Equal(t, 1, strings.Count(out.String(), "\x1b[2J"), "it is cleared once")
}

// Only a terminal is drawn on.
func TestTerminal(t *testing.T) {
	require.Nil(t, terminal(&testkit.Buffer{}))
}
