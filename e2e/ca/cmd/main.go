//go:build externalgrpc

// Command cmd is the Cluster Autoscaler of the end-to-end suites. It is the loop of cluster-autoscaler 1.33.0, with
// all flags, built from the packages of cluster-autoscaler.
//
// It follows cluster-autoscaler's main.go line by line. It leaves out leader election, ProvisioningRequests and
// proactive scale-up. It writes logs to stderr, and serves metrics and /health-check at --address.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	ours "github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca/core"
	"k8s.io/autoscaler/cluster-autoscaler/config/flags"
	"k8s.io/autoscaler/cluster-autoscaler/core"
	"k8s.io/autoscaler/cluster-autoscaler/debuggingsnapshot"
	"k8s.io/autoscaler/cluster-autoscaler/loop"
	"k8s.io/autoscaler/cluster-autoscaler/metrics"
	kubeutil "k8s.io/autoscaler/cluster-autoscaler/utils/kubernetes"
	kubeflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
)

func main() {
	klog.InitFlags(nil)
	// The real binary has these flags. They are accepted and ignored, so that the command line of the real binary
	// works here too.
	flag.Bool("leader-elect", false, "ignored: there is one process")
	pflag.CommandLine.SetNormalizeFunc(kubeflag.WordSepNormalizeFunc)
	pflag.CommandLine.AddGoFlagSet(flag.CommandLine)
	pflag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster-autoscaler:", err)
		klog.Flush()
		os.Exit(1)
	}
	klog.Flush()
}

// run runs the loop until a signal ends it, and then cleans up as the real binary does.
func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts := flags.AutoscalingOptions()
	metrics.RegisterAll(opts.EmitPerNodeGroupMetrics)
	health := metrics.NewHealthCheck(opts.MaxInactivityTime, opts.MaxFailingTime)
	snapshotter := debuggingsnapshot.NewDebuggingSnapshotter(opts.DebuggingSnapshotEnabled)
	serve(opts.Address, health)

	metrics.UpdateCPULimitsCores(opts.MinCoresTotal, opts.MaxCoresTotal)
	metrics.UpdateMemoryLimitsBytes(opts.MinMemoryTotal, opts.MaxMemoryTotal)
	metrics.InitMetrics()
	autoscaler, _, err := ours.New(ctx, opts, kubeutil.CreateKubeClient(opts.KubeClientOpts), snapshotter, nil)
	if err != nil {
		return fmt.Errorf("build autoscaler: %w", err)
	}
	observer := loop.StartPodObserver(ctx, kubeutil.CreateKubeClient(opts.KubeClientOpts))
	trigger := loop.NewLoopTrigger(autoscaler, nil, observer, opts.ScanInterval)
	health.StartMonitoring()
	if err := autoscaler.Start(); err != nil {
		return fmt.Errorf("start autoscaler: %w", err)
	}
	turns := make(chan struct{})
	go func() {
		defer close(turns)
		drive(ctx, autoscaler, trigger, health, opts.FrequentLoopsEnabled, opts.ScanInterval)
	}()
	<-ctx.Done()
	// This does not wait for the end of the loop: the real binary also cleans up and exits immediately
	// (registerSignalHandlers).
	autoscaler.ExitCleanUp()
	return nil
}

// drive corresponds to the last part of the function run in the real binary's main.go. It runs one loop in each scan
// interval, and another loop immediately when the trigger fires.
func drive(
	ctx context.Context, a core.Autoscaler, trigger *loop.LoopTrigger, health *metrics.HealthCheck, frequent bool,
	scan time.Duration,
) {
	last, previous := time.Now(), time.Now()
	for ctx.Err() == nil {
		if frequent {
			trigger.Wait(previous)
			previous, last = last, time.Now()
		} else {
			select {
			case <-ctx.Done():
				return
			case <-time.After(scan):
			}
			last = time.Now()
		}
		loop.RunAutoscalerOnce(a, health, last)
	}
}
