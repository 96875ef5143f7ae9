package connect

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These constants are the interval and the time limits of Await.
const (
	requestTimeout = 5 * time.Second // of one request
	retryInterval  = 2 * time.Second
	// patience is the time for which Await waits while Temporal refuses us or the namespace is missing. When a
	// process starts, its credentials may still change, and the namespace may not exist yet.
	patience = 15 * time.Second
)

// Check sends one request to find out whether Temporal serves the namespace. Explain converts the error of the
// request.
func (t *Target) Check(ctx context.Context, c client.Client) error {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := c.WorkflowService().DescribeNamespace(bounded,
		&workflowservice.DescribeNamespaceRequest{Namespace: t.Namespace})
	return t.Explain(ctx, err)
}

// Await blocks until Temporal serves the namespace, and logs each new reason to wait. While Temporal does not
// respond, Await waits without a limit. If Temporal refuses us or the namespace is missing, Await returns an error
// after the time patience. It returns nil if ctx ends.
func (t *Target) Await(ctx context.Context, c client.Client, log *slog.Logger) error {
	return t.await(ctx, c, log, patience)
}

func (t *Target) await(ctx context.Context, c client.Client, log *slog.Logger, patience time.Duration) error {
	var logged logonce.LastError
	var refused time.Time // the time since which Temporal refuses us or the namespace is missing, or zero
	for ctx.Err() == nil {
		err := t.Check(ctx, c)
		if err == nil {
			return nil
		}
		var f *Failure
		switch {
		case !errors.As(err, &f) || f.Code == ExitUnreachable || ctx.Err() != nil:
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) >= patience:
			return err
		}
		if logged.IsNew(err) && ctx.Err() == nil {
			log.Warn("waiting for Temporal", "address", t.Address, "namespace", t.Namespace, "error", err)
		}
		wait.For(ctx, retryInterval)
	}
	return nil
}
