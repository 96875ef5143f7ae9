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

// Session is the session in which a provider's agent writes. When a newer session has started, writes of this session
// no longer take effect, even if they arrive late. Session is safe for concurrent use.
type Session struct {
	client   *Client
	number   int64
	sequence atomic.Int64
}

// Begin ends the previous session of this provider's agent, and starts a new one. It returns the same errors as Put.
func (c *Client) Begin(ctx context.Context, provider string) (*Session, error) {
	var begun api.Session
	err := c.do(ctx, http.MethodPost, c.base.JoinPath(api.PathSessions), api.Begin{Provider: provider}, &begun)
	if err != nil {
		return nil, fmt.Errorf("begin session of provider %s: %w", provider, err)
	}
	return &Session{client: c, number: begun.Session}, nil
}

// turn returns the query parameters of the next write, with the next sequence number. Each write has a new sequence
// number, even if the previous write got no response.
func (s *Session) turn() url.Values {
	return url.Values{
		api.ParamSession:  {strconv.FormatInt(s.number, 10)},
		api.ParamSequence: {strconv.FormatInt(s.sequence.Add(1), 10)},
	}
}

// Put writes an offer as Client.Put does, within the session. It may also return ErrSession or ErrReplayed.
func (s *Session) Put(ctx context.Context, offer api.Posted) (api.Offer, error) {
	return s.client.put(ctx, offer, s.turn())
}

// Delete removes an offer as Client.Delete does, within the session. It may also return ErrSession or ErrReplayed.
func (s *Session) Delete(ctx context.Context, name string) error {
	return s.client.remove(ctx, name, s.turn())
}
