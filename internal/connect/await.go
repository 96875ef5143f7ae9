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

// These are the times of Await.
const (
	askTimeout = 5 * time.Second
	askEvery   = 2 * time.Second
	// patience is how long a refusal, or a missing namespace, must last before Await returns it: the credentials may be
	// about to change, or the namespace about to be created.
	patience = 15 * time.Second
)

// Check requests once whether Temporal serves the namespace. Its errors are explained.
func (t *Target) Check(ctx context.Context, c client.Client) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := c.WorkflowService().DescribeNamespace(asking,
		&workflowservice.DescribeNamespaceRequest{Namespace: t.Namespace})
	return t.Explain(ctx, err)
}

// Await waits until Temporal serves the namespace for the first time, or the context ends. While Temporal does not
// respond it keeps waiting, and logs each new reason. A refusal or a missing namespace that lasts for patience is an
// error.
func (t *Target) Await(ctx context.Context, c client.Client, log *slog.Logger) error {
	return t.await(ctx, c, log, patience)
}

func (t *Target) await(ctx context.Context, c client.Client, log *slog.Logger, patience time.Duration) error {
	var logged logonce.LastError
	var refused time.Time // start of the refusal
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
		wait.For(ctx, askEvery)
	}
	return nil
}
