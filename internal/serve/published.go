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

// DefaultNamespace is where the docs install us and Cluster Autoscaler.
const DefaultNamespace = "liqo-autoscaler"

// Times of a look at the published market.
const (
	oldMarket     = 3 * time.Minute // when one that was not written again is worth a word
	MarketTimeout = 5 * time.Second
)

// Published says where commands for people read the market that the worker publishes.
type Published struct{ Namespace, File string }

// Register adds the flags.
func (p *Published) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Namespace, "market-namespace", DefaultNamespace,
		"namespace of the ConfigMap "+market.ConfigMapName("HUB")+", where the worker publishes what is offered now")
	cmd.Flags().StringVar(&p.File, "market-file", "", "file for the same, where all processes run on one machine")
}

// Ask reads the market with the access of the person who runs the command, and writes to notes why it cannot be read.
// It returns nil in that case. Without access to a cluster it returns nil and writes no note.
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

// Read reads the market. note says why it is not there, or is not to be believed. kube is not asked when a file is
// named.
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

// OffersIn are the offers of the market; nil when there is none.
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
