package agent

import (
	"context"
	"errors"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
)

// Server is the Sink that publishes offers on the discovery server. It writes in a session, which it starts with its
// first write. When another agent of the provider starts a session, this agent's session ends. This agent then writes
// nothing for pauseAfterTakeover. After that it starts a new session, because the other agent may have stopped.
// Server is not safe for concurrent use.
type Server struct {
	Client *client.Client

	session *client.Session
	lostAt  time.Time // the time at which this agent noticed the end of its last session
}

// pauseAfterTakeover is the time for which an agent does not write after another agent has started a session.
const pauseAfterTakeover = time.Minute

// Put implements Sink.
func (s *Server) Put(ctx context.Context, offer api.Posted, ttl time.Duration) error {
	if err := s.begin(ctx, offer.Provider); err != nil {
		return err
	}
	offer.TTLSeconds = int64(ttl / time.Second)
	_, err := s.session.Put(ctx, offer)
	return s.checkSession(err)
}

// Withdraw implements Sink. Without a session it returns an error, because this agent has no offers on the server.
func (s *Server) Withdraw(ctx context.Context, name string) error {
	if s.session == nil {
		return errPaused
	}
	return s.checkSession(s.session.Delete(ctx, name))
}

var errPaused = errors.New("another agent of this provider is publishing, or the discovery server lost its sessions")

// Restart discards the session, so that the next write starts another session.
func (s *Server) Restart() { s.session, s.lostAt = nil, time.Time{} }

func (s *Server) begin(ctx context.Context, provider string) (err error) {
	switch {
	case s.session != nil:
		return nil
	case !s.lostAt.IsZero() && time.Since(s.lostAt) < pauseAfterTakeover:
		return errPaused
	}
	s.session, err = s.Client.Begin(ctx, provider)
	return err
}

// checkSession discards the session if err shows that the session has ended, or that another agent writes in a
// session with the same number. Sessions have the same number when the server has lost its database and starts to
// number again. After checkSession has discarded the session, a later write starts another session.
func (s *Server) checkSession(err error) error {
	switch {
	case errors.Is(err, client.ErrSession):
		s.session, s.lostAt = nil, time.Now()
	case errors.Is(err, client.ErrReplayed):
		s.session = nil
	}
	return err
}
