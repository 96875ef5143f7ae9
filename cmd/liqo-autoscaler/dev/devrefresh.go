package dev

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// caInterval is the default of Cluster Autoscaler's --scan-interval.
const caInterval = 10 * time.Second

// refresher is the method of the gRPC server that reads changed files.
type refresher interface {
	Refresh(ctx context.Context, r *protos.RefreshRequest) (*protos.RefreshResponse, error)
}

// refresh calls Refresh repeatedly until ctx ends, as Cluster Autoscaler does, so that changes of the files take
// effect.
func refresh(ctx context.Context, server refresher, every time.Duration, log *slog.Logger) {
	for wait.For(ctx, every) {
		if _, err := server.Refresh(ctx, &protos.RefreshRequest{}); err != nil && ctx.Err() == nil {
			log.Warn("refresh failed", "error", err)
		}
	}
}

// reportTemporal prints a message when Temporal has not answered for two intervals, and another message when it
// answers again. It blocks until ctx ends.
func reportTemporal(ctx context.Context, every time.Duration, answers func(context.Context) error, log string,
	out io.Writer) {
	failed := 0
	for wait.For(ctx, every) {
		err := answers(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if failed++; failed == 2 {
				fmt.Fprintf(out, "\nTemporal does not answer, see %s: %v\n", log, err)
			}
		case failed >= 2:
			fmt.Fprintln(out, "Temporal answers again; work in progress continues")
			failed = 0
		default:
			failed = 0
		}
	}
}
