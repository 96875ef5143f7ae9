package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// unpolledFor is the time for which a server that has seen a worker stays ready while Temporal reports no worker.
// Temporal lists a worker for five minutes after the worker's last poll, but forgets all workers when Temporal
// restarts.
const unpolledFor = time.Minute

// Fresh reports whether the last successful refresh is less than a minute old.
func (s *Server) Fresh() bool {
	at := s.freshAt.Load()
	return at != nil && time.Since(*at) < freshFor
}

// Ready returns nil when the node groups were read within the last minute and a worker polls their task queue.
// Otherwise it returns an error that names the missing condition. Ready makes no request. Without a worker, each
// scale-out would fail, and CA would back off from the node groups for minutes.
func (s *Server) Ready() error {
	if why := s.unpolled.Load(); why != nil { // checked first: without a worker, a new group cannot be read either
		return why.error
	}
	if !s.Fresh() {
		if why := s.failing.Load(); why != nil {
			return fmt.Errorf("not all node groups were read within the last minute: %w", why.error)
		}
		return errors.New("not all node groups were read within the last minute")
	}
	return nil
}

// checkWorkers records whether a worker polls the task queue. After an error of Temporal it changes nothing, because
// the error does not show that the worker is missing.
func (s *Server) checkWorkers(ctx context.Context) {
	if s.polled == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	why, err := s.polled(ctx)
	if err != nil {
		return
	}
	now := time.Now()
	if why == nil {
		if s.unpolled.Swap(nil) != nil {
			s.log.Info("a worker polls the task queue")
		}
		s.polledAt.Store(&now)
		return
	}
	if at := s.polledAt.Load(); at != nil && now.Sub(*at) < unpolledFor {
		return
	}
	if s.unpolled.Swap(&problem{why}) == nil {
		s.log.Warn("the server is not ready", "error", why)
	}
}
