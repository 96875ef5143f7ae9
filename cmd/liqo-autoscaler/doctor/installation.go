package doctor

import (
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Flag is a flag of Cluster Autoscaler that liqo-autoscaler needs or recommends.
type Flag struct{ Name, Value, Why string }

// Temporal holds the state that was read from Temporal. Err is the error of reading it, or nil.
type Temporal struct {
	Err     error
	Stuck   bool // Temporal answers, but cannot read its database
	Version string
	Missing []string // search attributes
	Polled  bool     // whether a worker polls the hub's task queue
	Queue   string
	Groups  []fleet.Snapshot
	// Ended contains the costs of groups that have ended this month.
	Ended     []money.Spent
	Providers []fleet.ProviderSnapshot
}

// Provider is the connection to one provider, with the credentials of its offer.
type Provider struct {
	Name       string // path of the kubeconfig file
	Kube       kubernetes.Interface
	ConsumerID string // "" when the credentials do not contain the consumer's id
	Life       account.Life
}

// Installation holds the input of the checks. A check is omitted if the field that it needs is nil.
type Installation struct {
	// Kube connects to the consumer cluster.
	Kube     kubernetes.Interface
	Temporal *Temporal
	// Market contains the present offers; MarketNote explains why it is missing or stale.
	Market     *market.Market
	MarketNote string
	Providers  []Provider
	// Flags returns the flags that Cluster Autoscaler needs. Its parameter is the time that the slowest group may
	// need to create a node.
	Flags func(provision time.Duration) []Flag
	// Skew is the time by which the API server's clock is ahead of this machine's clock.
	Skew time.Duration
	Now  time.Time
}
