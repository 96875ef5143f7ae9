package connect

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/credentials"
)

// Handshake returns the credentials that new connections use.
func (t *Target) Handshake() credentials.TransportCredentials { return t.tls }

// AwaitFor calls Await with another value of patience.
func (t *Target) AwaitFor(ctx context.Context, c client.Client, log *slog.Logger, patience time.Duration) error {
	return t.await(ctx, c, log, patience)
}
