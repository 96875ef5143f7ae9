package discovery_test

import (
	"testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

// This build reads all fields of the documents that earlier builds of agents, writers, discovery servers and workers
// have written. These documents are the requests and answers of the discovery server, its stored state, and the market.
func TestWire(t *testing.T) {
	for name, zero := range map[string]any{
		"Posted": api.Posted{}, "Begin": api.Begin{}, "Session": api.Session{}, "Offer": api.Offer{}, "List": api.List{},
		"Problem": api.Problem{}, "Record": store.Record{}, "Market": market.Market{},
		"Published": discovery.Published{},
	} {
		golden.Wire(t, "testdata/wire", name, zero)
	}
}
