package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Times of watching.
const (
	watchNewGroups = 2 * time.Second // how often new groups are looked for
	watchAgain     = time.Second     // before a group that could not be followed is tried again
)

// watchStatus prints the status and then each change, none left out, until ctx ends. What cannot be followed for a
// while is said on errOut and tried again.
func watchStatus(ctx context.Context, groups *flow.Groups, f statusFlags, out, errOut io.Writer) error {
	w := &watcher{
		groups: groups, flags: f, snapshots: make(chan fleet.Snapshot), complaints: make(chan error),
		followed: map[string]bool{}, last: map[string]fleet.Snapshot{},
	}
	if f.output != "json" {
		if err := w.begin(ctx, out); err != nil {
			return err
		}
	}
	followers, run := errgroup.WithContext(ctx)
	w.followers = followers
	followers.Go(func() error { return w.findGroups(run) })
	followers.Go(func() error { return w.print(run, out, errOut) })
	if err := followers.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

type watcher struct {
	groups     *flow.Groups
	flags      statusFlags
	followers  *errgroup.Group
	snapshots  chan fleet.Snapshot
	complaints chan error

	mu       sync.Mutex
	followed map[string]bool

	last map[string]fleet.Snapshot // what was printed last, by group
}

// begin prints what is, and the header of what is to come.
func (w *watcher) begin(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	snapshots, err := w.flags.snapshots(ctx, w.groups)
	if err != nil {
		return err
	}
	for _, s := range snapshots {
		w.last[s.Group] = s
	}
	if err := show.Print(out, w.flags.output, show.Look{Now: time.Now()}, show.StatusOf(snapshots...)); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return show.ChangeHeader(out)
}

// findGroups follows every group that is asked for, also those that start later.
func (w *watcher) findGroups(ctx context.Context) error {
	for {
		names, err := w.flags.names(ctx, w.groups)
		if err != nil && !send(ctx, w.complaints, err) {
			return nil
		}
		for _, name := range names {
			if w.isNew(name) {
				w.followers.Go(func() error { w.follow(ctx, name); return nil })
			}
		}
		if !wait.For(ctx, watchNewGroups) {
			return nil
		}
	}
}

func (w *watcher) isNew(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := !w.followed[name]
	w.followed[name] = true
	return is
}

// follow passes on the group's snapshot and each later one, for as long as ctx lasts or the group runs.
func (w *watcher) follow(ctx context.Context, name string) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.followed[name] = false
	}()
	for {
		first, err := w.groups.Snapshot(ctx, name)
		if errors.Is(err, fleet.ErrNotRunning) && len(w.flags.groups) == 0 {
			return // should it start again, it is found again
		}
		if err == nil && send(ctx, w.snapshots, first) {
			err = w.groups.Follow(ctx, name, first.Position(), func(s fleet.Snapshot) error {
				if !send(ctx, w.snapshots, s) {
					return ctx.Err()
				}
				return nil
			})
		}
		if !errors.Is(err, flow.ErrClosed) {
			send(ctx, w.complaints, fmt.Errorf("watch %s: %w", name, err))
		}
		if !wait.For(ctx, watchAgain) {
			return
		}
	}
}

// print is the only one who writes.
func (w *watcher) print(ctx context.Context, out, errOut io.Writer) error {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.complaints:
			if said != err.Error() { // once, not each second
				said = err.Error()
				fmt.Fprintln(errOut, "error:", err)
			}
		case s := <-w.snapshots:
			before, known := w.last[s.Group]
			w.last[s.Group] = s
			if known && !s.Newer(before) {
				continue
			}
			if err := w.printChanges(out, before, s); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
	}
}

func (w *watcher) printChanges(out io.Writer, before, after fleet.Snapshot) error {
	var errs []error
	for _, change := range show.Changes(before, after) {
		if w.flags.output == "json" {
			errs = append(errs, json.NewEncoder(out).Encode(change))
		} else {
			errs = append(errs, change.Row(out, show.Look{Wide: w.flags.output == "wide", Now: time.Now()}))
		}
	}
	return errors.Join(errs...)
}

// send gives v to whoever reads the channel; false when ctx ended first.
func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}
