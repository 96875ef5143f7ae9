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

// These are the times for reading the published market.
const (
	oldMarket     = 3 * time.Minute // age from which a note is printed
	MarketTimeout = 5 * time.Second
)

// Published locates the market that the worker publishes, for the commands of users.
type Published struct{ Namespace, File string }

// Register adds the flags.
func (p *Published) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Namespace, "market-namespace", DefaultNamespace,
		"namespace of the ConfigMap "+market.ConfigMapName("HUB")+", in which the worker publishes the current offers")
	cmd.Flags().StringVar(&p.File, "market-file", "", "file with the published market, instead of "+
		"--market-namespace; for processes on one machine")
}

// Ask reads the market with the access of the user that runs the command. If the market cannot be read, it writes the
// reason to notes and returns nil. Without access to a cluster it returns nil and writes no note.
func (p Published) Ask(ctx context.Context, kubeconfig, hub string, notes io.Writer) *market.Market {
	var kube kubernetes.Interface
	if p.File == "" {
		access, err := Personal(kubeconfig)
		if err != nil {
			return nil
		}
		if kube, err = kubernetes.NewForConfig(access); err != nil {
			fmt.Fprintln(notes, "not shown:", err)
			return nil
		}
	}
	m, note := p.Read(ctx, kube, hub)
	if note != "" {
		fmt.Fprintln(notes, "note:", note)
	}
	return m
}

// Read reads the market. note explains why it is missing or stale. kube is not used when a file is set.
func (p Published) Read(ctx context.Context, kube kubernetes.Interface, hub string) (m *market.Market, note string) {
	var store market.Store = market.ConfigMap{Client: kube, Namespace: p.Namespace, Name: market.ConfigMapName(hub)}
	if p.File != "" {
		store = market.File(p.File)
	}
	ctx, cancel := context.WithTimeout(ctx, MarketTimeout)
	defer cancel()
	found, err := store.Load(ctx)
	if err != nil {
		return nil, fmt.Sprintf("what is offered now: %v", err)
	}
	if age := time.Since(found.At); age > oldMarket {
		note = fmt.Sprintf("the market was published %s ago: does a worker run?", age.Round(time.Second))
	}
	return &found, note
}

// OffersIn returns the offers of the market; nil without a market.
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
