package serve

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// DefaultNamespace is the namespace into which the docs install liqo-autoscaler and Cluster Autoscaler.
const DefaultNamespace = "liqo-autoscaler"

// These constants are the times for reading the published market.
const (
	oldMarket     = 3 * time.Minute // the age above which a note is printed
	MarketTimeout = 5 * time.Second // the maximum duration of one read
)

// Published holds the flags with which a user's command finds the market. The market is the list of current offers,
// which the worker publishes in a ConfigMap or a file.
type Published struct{ Namespace, File string }

// Register adds the flags.
func (p *Published) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Namespace, "market-namespace", DefaultNamespace,
		"namespace of the ConfigMap "+market.ConfigMapName("HUB")+", in which the worker publishes the current offers")
	cmd.Flags().StringVar(&p.File, "market-file", "", "file with the published market, instead of "+
		"--market-namespace; for processes on one machine")
}

// Ask reads the market with the access of the user that runs the command. If the market is old, Ask writes a message
// to the parameter notes. If the market cannot be read, Ask writes the reason to notes and returns nil. If the user
// has no access to a cluster, Ask returns nil and writes nothing.
func (p Published) Ask(ctx context.Context, kubeconfig, hub string, notes io.Writer) *market.Market {
	var kube kubernetes.Interface
	if p.File == "" {
		access, err := Personal(kubeconfig)
		if err != nil {
			return nil
		}
		if kube, err = kubernetes.NewForConfig(access); err != nil {
			fmt.Fprintln(notes, "note: the current offers cannot be read:", err)
			return nil
		}
	}
	m, note := p.Read(ctx, kube, hub)
	if note != "" {
		fmt.Fprintln(notes, "note:", note)
	}
	return m
}

// Read reads the market from the file or, without a file, from the ConfigMap. note explains why the market is missing
// or old, or is "". Read blocks for at most MarketTimeout.
func (p Published) Read(ctx context.Context, kube kubernetes.Interface, hub string) (m *market.Market, note string) {
	var store market.Store = market.ConfigMap{Client: kube, Namespace: p.Namespace, Name: market.ConfigMapName(hub)}
	if p.File != "" {
		store = market.File(p.File)
	}
	ctx, cancel := context.WithTimeout(ctx, MarketTimeout)
	defer cancel()
	found, err := store.Load(ctx)
	if err != nil {
		return nil, fmt.Sprintf("the current offers cannot be read: %v", err)
	}
	if age := time.Since(found.At); age > oldMarket {
		note = fmt.Sprintf("the market was published %s ago: does a worker run?", age.Round(time.Second))
	}
	return &found, note
}

// OffersIn returns the offers of the market, or nil without a market.
func OffersIn(m *market.Market) []fleet.Offer {
	if m == nil {
		return nil
	}
	offered := []fleet.Offer{}
	for _, o := range m.Offers {
		offered = append(offered, o.Candidate().Offer)
	}
	return offered
}
