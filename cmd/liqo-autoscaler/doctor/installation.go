package doctor

import (
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Flag is a flag of Cluster Autoscaler that goes with us.
type Flag struct{ Name, Value, Why string }

// Temporal is what was learned from Temporal. Err is why nothing was.
type Temporal struct {
	Err     error
	Version string
	Missing []string // search attributes
	Polled  bool     // whether a worker polls the hub's task queue
	Queue   string
	Groups  []fleet.Snapshot
	// Ended are the costs of groups that have ended this month.
	Ended     []money.Spent
	Providers []fleet.ProviderSnapshot
}

// Provider is one provider's side, over the credentials of its offer.
type Provider struct {
	Name       string // the kubeconfig's file
	Kube       kubernetes.Interface
	ConsumerID string // "" when the credentials do not say whose they are
	Life       account.Life
}

// Installation is what is examined. What is nil is left out.
type Installation struct {
	// Kube is the consumer cluster.
	Kube     kubernetes.Interface
	Temporal *Temporal
	// Market is what is offered now; MarketNote says why it is not there, or too old.
	Market     *market.Market
	MarketNote string
	Providers  []Provider
	// Flags are those that Cluster Autoscaler needs for a time in which all groups' nodes come.
	Flags func(provision time.Duration) []Flag
	// Skew is how far the cluster's clock is ahead of our clock.
	Skew time.Duration
	Now  time.Time
}
