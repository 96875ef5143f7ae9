package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// Put creates or replaces the offer. Idempotent. Errors: ErrUnreachable, ErrDenied, ErrRefused; an offer with faults is
// not sent, and the error lists them by path.
func (c *Client) Put(ctx context.Context, offer api.Posted) (api.Offer, error) {
	if err := offer.Check(); err != nil {
		return api.Offer{}, fmt.Errorf("put offer %s: %w", offer.Name, err)
	}
	var out api.Offer
	if err := c.do(ctx, http.MethodPut, c.target(offer.Name), offer, &out); err != nil {
		return api.Offer{}, fmt.Errorf("put offer %s: %w", offer.Name, err)
	}
	return out, nil
}

// Delete removes the offer. Idempotent; removing an absent one is success. Errors: ErrUnreachable, ErrDenied.
func (c *Client) Delete(ctx context.Context, name string) error {
	if err := c.do(ctx, http.MethodDelete, c.target(name), nil, nil); err != nil {
		return fmt.Errorf("delete offer %s: %w", name, err)
	}
	return nil
}
