// Command liqo-autoscaler lets the Kubernetes Cluster Autoscaler grow a cluster with Liqo virtual nodes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/connect"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(connect.ExitCode(err))
	}
}
