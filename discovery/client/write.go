package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// Put creates or replaces the offer. It is idempotent. Its errors are ErrUnreachable, ErrDenied and ErrRefused. It
// does not send an offer that has faults. Instead it returns an error that lists the faults by path.
func (c *Client) Put(ctx context.Context, offer api.Posted) (api.Offer, error) {
	return c.put(ctx, offer, nil)
}

func (c *Client) put(ctx context.Context, offer api.Posted, turn url.Values) (out api.Offer, err error) {
	if err = offer.Check(); err == nil {
		target := c.target(offer.Name)
		target.RawQuery = turn.Encode()
		err = c.do(ctx, http.MethodPut, target, offer, &out)
	}
	if err != nil {
		return api.Offer{}, fmt.Errorf("put offer %s: %w", offer.Name, err)
	}
	return out, nil
}

// Delete removes the offer. It is idempotent: it also succeeds if the offer does not exist. It returns the same
// errors as Put.
func (c *Client) Delete(ctx context.Context, name string) error { return c.remove(ctx, name, nil) }

func (c *Client) remove(ctx context.Context, name string, turn url.Values) error {
	target := c.target(name)
	target.RawQuery = turn.Encode()
	if err := c.do(ctx, http.MethodDelete, target, nil, nil); err != nil {
		return fmt.Errorf("delete offer %s: %w", name, err)
	}
	return nil
}
