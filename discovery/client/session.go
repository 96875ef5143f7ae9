package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// Session is in which the agent of a provider writes: when a newer one has begun, no write of this one takes effect any
// longer, however late it arrives. Safe for concurrent use.
type Session struct {
	client   *Client
	number   int64
	sequence atomic.Int64
}

// Begin ends the session of this provider's agent that was before, and makes a new one. Errors as of Put.
func (c *Client) Begin(ctx context.Context, provider string) (*Session, error) {
	var begun api.Session
	err := c.do(ctx, http.MethodPost, c.base.JoinPath(api.PathSessions), api.Begin{Provider: provider}, &begun)
	if err != nil {
		return nil, fmt.Errorf("begin session of provider %s: %w", provider, err)
	}
	return &Session{client: c, number: begun.Session}, nil
}

// turn is the next one. It is used up also by a write without an answer.
func (s *Session) turn() url.Values {
	return url.Values{
		api.ParamSession:  {strconv.FormatInt(s.number, 10)},
		api.ParamSequence: {strconv.FormatInt(s.sequence.Add(1), 10)},
	}
}

// Put is Client.Put within the session; and ErrSession.
func (s *Session) Put(ctx context.Context, offer api.Posted) (api.Offer, error) {
	return s.client.put(ctx, offer, s.turn())
}

// Delete is Client.Delete within the session; and ErrSession.
func (s *Session) Delete(ctx context.Context, name string) error {
	return s.client.remove(ctx, name, s.turn())
}
