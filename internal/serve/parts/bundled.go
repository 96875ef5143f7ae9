package parts

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
)

// BundledFlags holds the flags for a Temporal server that runs in the worker's pod. Only this hub uses such a server.
type BundledFlags struct {
	Enabled   bool
	Retention time.Duration
}

// Register adds the flags.
func (f *BundledFlags) Register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Enabled, "bundled-temporal", false,
		"Temporal runs in this pod: the worker creates Temporal's namespace and search attributes, and is ready only "+
			"while Temporal's database stores writes")
	cmd.Flags().DurationVar(&f.Retention, "bundled-temporal-retention", 72*time.Hour,
		"how long a new namespace of --bundled-temporal keeps workflows that have ended; at least 24h")
}

// Check returns an error if the flags are not valid.
func (f BundledFlags) Check() error {
	if f.Enabled && f.Retention < connect.MinRetention {
		return fmt.Errorf("--bundled-temporal-retention %s: use 24h or more", f.Retention)
	}
	return nil
}

// Prepare creates the namespace and the search attributes if they are missing. It is idempotent. It blocks until it
// has succeeded or ctx ends. After each failure it passes the error to the function waits, logs a new error, and
// tries again after a second.
func (f BundledFlags) Prepare(ctx context.Context, t client.Client, target *connect.Target, log *slog.Logger,
	waits func(why error)) {
	if !f.Enabled {
		return
	}
	var logged logonce.LastError
	for {
		kept, created, err := target.EnsureNamespace(ctx, t, f.Retention)
		if err == nil {
			var made []string
			made, err = searchattr.Register(ctx, t, target.Namespace)
			if err == nil {
				log.Info("prepared Temporal", "namespace", target.Namespace, "created", created, "retention", kept.String(),
					"registered", made)
				return
			}
		}
		waits(err)
		if logged.IsNew(err) && ctx.Err() == nil {
			log.Warn("waiting for the Temporal of this pod", "address", target.Address, "error", err)
		}
		if !wait.For(ctx, time.Second) {
			return
		}
	}
}

// storesEvery is the minimum interval between two writes of the check. The kubelet runs the check every few seconds,
// and each write changes several pages of the database.
const storesEvery = 30 * time.Second

// stampKey is the key in the namespace's data to which ReadyWhileItStores writes.
const stampKey = "liqo-autoscaler-stored"

// ReadyWhileItStores adds a readiness check that writes a time into the data of Temporal's namespace and reads the
// time back. Temporal's own health check is not sufficient, because it succeeds even if the disk is full.
func (f BundledFlags) ReadyWhileItStores(o *Monitor, t client.Client, namespace string) {
	if f.Enabled {
		o.ReadyWhenRemote("Temporal's database", stores(t.WorkflowService(), namespace))
	}
}

// stores returns the check of ReadyWhileItStores. The check is not safe for concurrent use.
func stores(t workflowservice.WorkflowServiceClient, name string) func(context.Context) error {
	var stored time.Time
	return func(ctx context.Context) error {
		if !stored.IsZero() && time.Since(stored) < storesEvery {
			return nil
		}
		stamp := time.Now().UTC().Format(time.RFC3339Nano)
		if _, err := t.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{Namespace: name,
			UpdateInfo: &namespace.UpdateNamespaceInfo{Data: map[string]string{stampKey: stamp}}}); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		got, err := t.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if read := got.GetNamespaceInfo().GetData()[stampKey]; read != stamp {
			return fmt.Errorf("read: %q, where %q was written", read, stamp)
		}
		stored = time.Now()
		return nil
	}
}
