package agent

import (
	"context"
	"errors"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
)

// Server is the discovery server as a Sink. It writes in a session, which it begins with its first write. When another
// agent of the provider begins one, this one stands back for a while, and then begins anew: the other may be gone.
// Not safe for concurrent use.
type Server struct {
	Client *client.Client

	session *client.Session
	lost    time.Time // when the last session was found to be over
}

// standBack is how long an agent leaves the field to one that has begun after it.
const standBack = time.Minute

// Put implements Sink.
func (s *Server) Put(ctx context.Context, offer api.Posted, ttl time.Duration) error {
	if err := s.begin(ctx, offer.Provider); err != nil {
		return err
	}
	offer.TTLSeconds = int64(ttl / time.Second)
	_, err := s.session.Put(ctx, offer)
	return s.heed(err)
}

// Withdraw implements Sink. Without a session there is nothing that this agent may take back.
func (s *Server) Withdraw(ctx context.Context, name string) error {
	if s.session == nil {
		return errStoodBack
	}
	return s.heed(s.session.Delete(ctx, name))
}

var errStoodBack = errors.New("another agent of this provider writes, or the discovery server has lost its sessions")

// Restart ends the session as far as this agent goes: the next write begins one.
func (s *Server) Restart() { s.session, s.lost = nil, time.Time{} }

func (s *Server) begin(ctx context.Context, provider string) (err error) {
	switch {
	case s.session != nil:
		return nil
	case !s.lost.IsZero() && time.Since(s.lost) < standBack:
		return errStoodBack
	}
	s.session, err = s.Client.Begin(ctx, provider)
	return err
}

// heed notes that the session is over, or that somebody else writes in it, as when the server's database has forgotten
// it and issued its number again: then the next write begins another.
func (s *Server) heed(err error) error {
	switch {
	case errors.Is(err, client.ErrSession):
		s.session, s.lost = nil, time.Now()
	case errors.Is(err, client.ErrReplayed):
		s.session = nil
	}
	return err
}
