package main

import (
	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/dev"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/operate"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/pair"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/providers"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/setup"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "liqo-autoscaler",
		Short:         "Liqo virtual nodes for the Kubernetes Cluster Autoscaler",
		Version:       cli.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c := &connect.Common{}
	c.Register(root)
	root.AddCommand(
		serve.NewGRPCServer(c), serve.NewWorker(c), serve.NewDiscovery(c),
		operate.NewStatus(c), operate.NewReport(c), operate.NewExplain(c), operate.NewPause(c), operate.NewResume(c),
		operate.NewCordon(c), operate.NewUncordon(c), operate.NewDoctor(c),
		providers.NewOffers(c), providers.NewProviderAccess(), providers.NewWriters(),
		pair.NewSetup(c), setup.NewConfig(c), setup.NewTemporal(c),
		dev.NewDev(c), dev.NewDemo(c))
	complete.NoFiles(root)
	return root
}
