package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These constants are the intervals and bounds of keeping the view up to date.
const (
	refreshTimeout = 5 * time.Second  // of our own refreshes; CA's have their own deadline
	refreshEvery   = 20 * time.Second // while CA does not call
	retryFirst     = 250 * time.Millisecond
	retryMax       = 5 * time.Second
	freshFor       = 60 * time.Second // see Fresh
	// standbyAfter is the time without a Refresh by CA after which this server is a standby. A server that CA has never
	// called is a standby too.
	standbyAfter = 2 * time.Minute
)

// Start loads the view: it refreshes until a refresh succeeds, and returns an error only when ctx ends first.
func (s *Server) Start(ctx context.Context) error {
	for next := retryFirst; ; next = min(2*next, retryMax) {
		err := s.refreshInTime(ctx)
		if err == nil {
			return nil
		}
		s.log.Warn("node groups cannot be read yet", "error", err, "retry", next)
		if !wait.For(ctx, next) {
			return fmt.Errorf("load node groups: %w (last: %w)", context.Cause(ctx), err)
		}
	}
}

// KeepWarm loads the view and refreshes it until ctx ends. After each attempt it calls after, unless after is nil.
func (s *Server) KeepWarm(ctx context.Context, after func()) {
	retry := retryFirst
	s.beat()
	for {
		if s.standby() { // CA may switch to this server in the middle of a loop, and must find its groups
			s.reread()
		}
		err := s.refreshInTime(ctx)
		var failing *problem
		if err != nil {
			failing = &problem{err}
		}
		s.failing.Store(failing)
		s.checkWorkers(ctx)
		s.beat()
		if after != nil {
			after()
		}
		next := refreshEvery
		if err == nil && s.allUsable() && s.unpolled.Load() == nil {
			retry = retryFirst
		} else {
			next, retry = retry, min(2*retry, retryMax)
		}
		if err != nil {
			s.log.Warn("node groups cannot be read", "error", err, "retry", next)
		}
		if !wait.For(ctx, next) {
			return
		}
	}
}

func (s *Server) standby() bool { return time.Since(time.Unix(0, s.calledAt.Load())) > standbyAfter }

func (s *Server) allUsable() bool {
	return !slices.ContainsFunc(s.roster.Load().list, func(g *group) bool { return g.unusable.Load() != nil })
}

// aliveFor bounds the time of one iteration of KeepWarm: three times its normal time.
const aliveFor = 3 * (refreshEvery + refreshTimeout)

// Alive returns an error when the loop of KeepWarm hangs or never started, which only a restart repairs. Failed
// refreshes do not count.
func (s *Server) Alive() error {
	at := s.triedAt.Load()
	if at == nil {
		return errors.New("the loop that reads the node groups has not started")
	}
	if since := time.Since(*at); since > aliveFor {
		return fmt.Errorf("the loop that reads the node groups has hung for %s", since.Round(time.Second))
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
