package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/file"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
)

type workerFlags struct {
	kind, kubeconfig, hub, liqoNamespace, world, offers string
}

func newWorker(c *common) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the workflows and activities",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := c.logger(os.Stderr)
			if err != nil {
				return err
			}
			b, err := f.backend()
			if err != nil {
				return err
			}
			source, err := file.Open(f.offers)
			if err != nil {
				return err
			}
			t, err := c.dial(logger)
			if err != nil {
				return err
			}
			defer t.Close()
			logger.Info("worker started", "backend", f.kind, "offers", f.offers, "temporal", c.temporalAddress)
			return worker.Run(cmd.Context(), worker.Options{
				Temporal: t, TaskQueue: c.taskQueue, Backend: b, Catalog: discovery.Resolve(source, b, discovery.Options{}),
				Logger: logger,
			})
		},
	}
	cmd.Flags().StringVar(&f.kind, "backend", "liqo", "what lends nodes: liqo, or sim for a simulated world")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "access to the consumer cluster (default: in-cluster)")
	cmd.Flags().StringVar(&f.hub, "hub", "", "name of this installation in labels (default \"default\")")
	cmd.Flags().StringVar(&f.liqoNamespace, "liqo-namespace", "liqo", "namespace of Liqo in all clusters")
	cmd.Flags().StringVar(&f.world, "world", "", "file of the simulated world, for --backend sim")
	cmd.Flags().StringVar(&f.offers, "offers", "", "YAML file with the offers (required)")
	_ = cmd.MarkFlagRequired("offers")
	return cmd
}

func (f workerFlags) backend() (backend.Backend, error) {
	switch f.kind {
	case "sim":
		if f.world == "" {
			return nil, fmt.Errorf("--backend sim needs --world")
		}
		w, err := sim.Open(f.world)
		if err != nil {
			return nil, err
		}
		return sim.New(w, sim.Options{Hub: f.hub}), nil
	case "liqo":
		access, err := consumer(f.kubeconfig)
		if err != nil {
			return nil, err
		}
		return liqo.New(liqo.Config{Consumer: access, Hub: f.hub, LiqoNamespace: f.liqoNamespace})
	default:
		return nil, fmt.Errorf("--backend %q: use liqo or sim", f.kind)
	}
}

// consumer is the access to the cluster that lacks room: a kubeconfig, or the Pod's own ServiceAccount.
func consumer(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		access, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig, and not in a cluster: %w", err)
		}
		return access, nil
	}
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the consumer cluster: %w", err)
	}
	return access, nil
}
