package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These constants are the intervals and bounds of the view's updates.
const (
	refreshTimeout = 5 * time.Second  // for refreshes by KeepWarm and Start; a refresh by CA has CA's deadline
	refreshEvery   = 20 * time.Second // while CA does not call
	retryFirst     = 250 * time.Millisecond
	retryMax       = 5 * time.Second
	freshFor       = 60 * time.Second // see Fresh
	// standbyAfter is a time without a Refresh by CA. When it has passed, this server is a standby: CA uses another
	// replica. A server that CA has never called is a standby too.
	standbyAfter = 2 * time.Minute
)

// Start loads the view: it tries to refresh until a refresh succeeds. It returns an error only when ctx ends first.
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

// KeepWarm loads the view and refreshes it until ctx ends. If `after` is not nil, KeepWarm calls it at the end of
// each attempt.
func (s *Server) KeepWarm(ctx context.Context, after func()) {
	retry := retryFirst
	s.beat()
	for {
		if s.standby() { // CA may switch to this server in the middle of a loop, and must find the configured groups
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

// aliveFor bounds the time of one iteration of KeepWarm. It is three times the longest normal time.
const aliveFor = 3 * (refreshEvery + refreshTimeout)

// Alive returns an error when the loop of KeepWarm hangs or has never started. Only a restart of the server repairs
// this. Alive returns nil while refreshes fail.
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
