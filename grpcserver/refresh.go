package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Times of refreshing.
const (
	refreshParallel = 32               // one that is configured anew takes up to a second
	refreshTimeout  = 5 * time.Second  // of our own refreshes; CA's bring their deadline
	refreshEvery    = 20 * time.Second // keeps the view warm while CA does not call
	retryFirst      = 250 * time.Millisecond
	retryMost       = 5 * time.Second
	freshFor        = 60 * time.Second // see Fresh
)

// Refresh begins every CA loop: it puts a changed config in force, reads every group anew, and brings a group's spec in
// force where the group runs another or none. It is the one RPC that may fail for want of data; CA then ends the loop and
// keeps its timers.
func (s *Server) Refresh(ctx context.Context, _ *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	s.reread()
	err := s.refresh(ctx, true)
	s.dropEmpty(ctx)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &protos.RefreshResponse{}, nil
}

// Start loads the view: it refreshes until that works, and returns an error only when ctx ends first.
func (s *Server) Start(ctx context.Context) error {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		err := s.refreshInTime(ctx)
		if err == nil {
			return nil
		}
		s.log.Warn("node groups cannot be read yet", "error", err, "retry", wait)
		if !pause(ctx, wait) {
			return fmt.Errorf("load node groups: %w (last: %w)", context.Cause(ctx), err)
		}
	}
}

// KeepWarm loads the view and refreshes it until ctx ends. after, if not nil, is called after each try.
func (s *Server) KeepWarm(ctx context.Context, after func()) {
	wait := retryFirst
	s.beat()
	for {
		err := s.refreshInTime(ctx)
		s.beat()
		if after != nil {
			after()
		}
		next := refreshEvery
		if err == nil {
			wait = retryFirst
		} else {
			s.log.Warn("node groups cannot be read", "error", err, "retry", wait)
			next, wait = wait, min(2*wait, retryMost)
		}
		if !pause(ctx, next) {
			return
		}
	}
}

// Fresh tells whether the last good refresh is less than a minute old.
func (s *Server) Fresh() bool {
	at := s.freshAt.Load()
	return at != nil && time.Since(*at) < freshFor
}

// aliveFor is how long KeepWarm may take to come round: three times as long as it should.
const aliveFor = 3 * (refreshEvery + refreshTimeout)

// Alive fails when KeepWarm has stopped coming round, good or bad, or never began: only a restart mends that. That Temporal
// does not answer is no such reason.
func (s *Server) Alive() error {
	at := s.triedAt.Load()
	if at == nil {
		return errors.New("the loop that reads the node groups has not begun")
	}
	if since := time.Since(*at); since > aliveFor {
		return fmt.Errorf("the loop that reads the node groups hangs since %s", since.Round(time.Second))
	}
	return nil
}

func (s *Server) beat() {
	now := time.Now()
	s.triedAt.Store(&now)
}

func (s *Server) refreshInTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return s.refresh(ctx, false)
}

// refresh reads all groups. A group that cannot be read keeps its picture; the others get theirs. byCA tells whether CA asks:
// then, and when it is read the first time, the config is the newest one, see reread, and may replace another.
func (s *Server) refresh(ctx context.Context, byCA bool) error {
	s.findRetired(ctx)
	began := time.Now()
	list := s.roster.Load().list
	errs := make([]error, len(list))
	var workers errgroup.Group
	workers.SetLimit(refreshParallel)
	for i, g := range list {
		workers.Go(func() error {
			errs[i] = s.refreshGroup(ctx, g, byCA)
			return nil
		})
	}
	_ = workers.Wait()
	if err := summary(list, errs); err != nil {
		return err
	}
	for { // the latest start wins
		at := s.freshAt.Load()
		if at != nil && at.After(began) || s.freshAt.CompareAndSwap(at, &began) {
			return nil
		}
	}
}

func (s *Server) refreshGroup(ctx context.Context, g *group, byCA bool) error {
	if until := g.dirtyUntil(); time.Now().Before(until) {
		return unsettled(until)
	}
	began := time.Now()
	snapshot, err := s.groups.Snapshot(ctx, g.id)
	missing := errors.Is(err, fleet.ErrNotRunning) || fleet.IsRefused(err, fleet.RefusedNotInitialised)
	if err != nil && !missing {
		return err
	}
	first := g.picture.Load() == nil
	if err == nil {
		if err := g.put(snapshot, began); err != nil {
			return err
		}
		if first {
			s.keepTemplate(g, snapshot)
		}
	}
	switch {
	case !missing && snapshot.SpecHash == g.terms.Load().hash:
	case byCA, first, !missing && snapshot.Spec == nil:
		if err := s.configure(ctx, g); err != nil {
			return err
		}
	case missing && !errors.Is(err, fleet.ErrNotRunning):
		return err
	default: // what another replica, to which CA talks, has done by a newer config: CA's next Refresh here tells
	}
	if until := g.dirtyUntil(); !until.IsZero() { // lost while we were reading
		return unsettled(until)
	}
	return nil
}

func unsettled(until time.Time) error {
	return fmt.Errorf("what became of the last operation cannot be told for another %s: %w",
		max(0, time.Until(until)).Round(time.Millisecond), fleet.ErrOutcomeUnknown)
}

// configure brings the configured spec in force. It takes the group's turn, so that no mutation is judged by two specs.
func (s *Server) configure(ctx context.Context, g *group) error {
	if err := g.takeTurn(ctx); err != nil {
		return err
	}
	defer g.giveTurn()
	began, t := time.Now(), g.terms.Load()
	snapshot, err := s.groups.Configure(ctx, t.spec)
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if snapshot.SpecHash != t.hash {
		return fmt.Errorf("configure: spec %s is in force instead of %s: %w", snapshot.SpecHash, t.hash, fleet.ErrUnavailable)
	}
	if err := g.put(snapshot, began); err != nil {
		return err
	}
	s.log.Info("configured", "group", g.id, "spec", t.hash, "target", snapshot.Target)
	return nil
}

// named bounds the ids in an error: gRPC carries it in a header.
const named = 20

// summary names all groups that failed and tells the first one's reason.
func summary(list []*group, errs []error) error {
	var ids []string
	var first error
	for i, err := range errs {
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		ids = append(ids, list[i].id)
	}
	if first == nil {
		return nil
	}
	reason := ids[0]
	more := ""
	if len(ids) > named {
		ids, more = ids[:named], fmt.Sprintf(" and %d more", len(ids)-named)
	}
	return fmt.Errorf("refresh node groups: cannot read %s%s: %s: %w", strings.Join(ids, ", "), more, reason, first)
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
