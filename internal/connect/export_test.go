package connect

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/credentials"
)

// Handshake returns the credentials of new connections.
func (t *Target) Handshake() credentials.TransportCredentials { return t.tls }

// AwaitFor is Await with another time limit.
func (t *Target) AwaitFor(ctx context.Context, c client.Client, log *slog.Logger, patience time.Duration) error {
	return t.await(ctx, c, log, patience)
}
