package operate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

const (
	screenEvery   = time.Second     // how often the screen is drawn when nothing changes
	screenTimeout = 5 * time.Second // of reading all that it shows
	marketEvery   = 3 * time.Second // how often the market is read: a worker publishes as often
	screenChanges = 100             // how many changes are kept
)

// terminal returns what tells the size of the terminal that out is; nil when it is none, or takes no escape sequences.
func terminal(out io.Writer) func() (width, height int, err error) {
	if !cli.IsTerminal(out) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (width, height int, err error) {
		if width, height, err = term.GetSize(int(out.(*os.File).Fd())); width < 2 || height < 1 {
			width, height = 80, 24 // it does not know
		}
		return width, height, err
	}
}

// screen is a view that is drawn anew in place.
type screen struct {
	title string
	wide  bool
	out   io.Writer
	size  func() (width, height int, err error)
	// read reads all that is shown but the changes; what can be read comes with the error. rows is how many instances
	// there is room for.
	read func(ctx context.Context, rows int) (show.Status, show.Offers, error)
	wake chan struct{} // draws at once

	mu      sync.Mutex
	changes []show.Change
}

// watchScreen shows status, offers and changes until ctx ends; what it drew last stays.
func watchScreen(ctx context.Context, c *connect.Common, groups *flow.Groups, entities *flow.Entities, f statusFlags,
	out io.Writer, size func() (int, int, error)) error {
	s := &screen{title: fmt.Sprintf("hub %s (Ctrl-C ends)", c.Hub), wide: f.output == "wide", out: out, size: size,
		wake: make(chan struct{}, 1)}
	var offered atomic.Pointer[market.Market]
	s.read = func(ctx context.Context, rows int) (show.Status, show.Offers, error) {
		m := offered.Load()
		status, providers, err := f.read(ctx, groups, entities, m)
		status.BusyFirst()
		waits(ctx, groups, status.Instances[:min(rows, len(status.Instances))])
		return status, show.OffersOf(providers, serve.OffersIn(m), nil), err
	}
	parts, run := errgroup.WithContext(ctx)
	parts.Go(func() error {
		for ok := true; ok; ok = wait.For(run, marketEvery) {
			offered.Store(f.market.Ask(run, f.kubeconfig, string(c.Hub), io.Discard))
		}
		return nil
	})
	parts.Go(func() error { return watchStatus(run, groups, f, s) })
	parts.Go(func() error { return s.run(run) })
	return parts.Wait()
}

// run draws until ctx ends. What cannot be read is shown as it was.
func (s *screen) run(ctx context.Context) error {
	defer fmt.Fprintln(s.out)
	var shown show.Screen
	since := time.Now()
	for wipe := "\x1b[2J"; ; wipe = "" {
		width, height, err := s.size()
		if err != nil {
			return fmt.Errorf("size of the terminal: %w", err)
		}
		reading, cancel := context.WithTimeout(ctx, screenTimeout)
		status, offers, err := s.read(reading, height)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		now := time.Now()
		if err == nil || len(status.Groups) > 0 {
			shown.Status, shown.Offers = status, offers
		}
		if shown.Problem = ""; err == nil {
			since = now
		} else {
			shown.Problem = fmt.Sprintf("not up to date since %s, trying again: %v", since.Format(time.TimeOnly), err)
		}
		shown.Title = now.Format(time.TimeOnly) + "  " + s.title
		if err := s.draw(shown, show.Style{Wide: s.wide, Now: now}, wipe, width, height); err != nil {
			return err
		}
		select {
		case <-s.wake:
		case <-time.After(screenEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// draw replaces what is drawn, line by line, so that nothing flickers.
func (s *screen) draw(shown show.Screen, look show.Style, wipe string, width, height int) error {
	s.mu.Lock()
	shown.Changes = slices.Clone(s.changes)
	s.mu.Unlock()
	var text bytes.Buffer
	// One column less: what clears the rest of a line would take a full line's last character.
	if err := shown.Draw(&text, look, width-1, height); err != nil {
		return err
	}
	lines := strings.ReplaceAll(text.String(), "\n", "\x1b[K\r\n")
	_, err := io.WriteString(s.out, wipe+"\x1b[H"+lines+"\x1b[K\x1b[J")
	return err
}

// failed and recovered are nothing to add: the screen reads for itself.
func (s *screen) failed(error) {}
func (s *screen) recovered()   {}

// changed keeps the last changes; what is there at the start is none.
func (s *screen) changed(before, after fleet.Snapshot) error {
	if before.Group == "" {
		return nil
	}
	s.mu.Lock()
	s.changes = append(s.changes, show.Changes(before, after)...)
	s.changes = s.changes[max(0, len(s.changes)-screenChanges):]
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}
