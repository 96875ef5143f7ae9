package liqo

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Config is what New needs. Only Consumer is required.
type Config struct {
	// Consumer is the access to the cluster that lacks room: the one CA scales.
	Consumer *rest.Config
	// Hub tells installations on the same cluster apart; a label value. Default "default".
	Hub string
	// LiqoNamespace is where Liqo is looked for first, on every cluster. Default "liqo".
	LiqoNamespace string
	// UnreachableAfter is how long a provider may fail to answer in a row before Establish and Join give up with
	// ErrUnreachable. Default 10s.
	UnreachableAfter time.Duration
	// ForceAfter is how long after it was begun Return lets pods terminate by themselves before it deletes them with grace
	// period 0. Liqo removes virtual nodes one at a time and waits for each one's pods, so it must be short. Default 5s.
	ForceAfter time.Duration
	// DenyAfter is how long a denied authentication of a slice is given to turn: Liqo also says denied while the signer
	// is slow, for which it waits 30 s (remoteresourceslice_controller.go, certificateIdentityProvider.go). Default 35s.
	DenyAfter time.Duration
	// TenantRights, if any, are what its account has to give itself before it may read Secrets in a tenant namespace.
	TenantRights *TenantRights
	// AnyLiqo peers clusters whose versions of Liqo do not go together, or are newer than this release, and puts several
	// nodes on a provider also with a Liqo that loses pods by it.
	AnyLiqo bool
	// RefusedFor is how long a provider that has removed our Tenant is left alone. Default 30m.
	RefusedFor time.Duration
}

func (c Config) withDefaults() Config {
	c.Hub = cmp.Or(c.Hub, fleet.DefaultHub)
	c.LiqoNamespace = cmp.Or(c.LiqoNamespace, "liqo")
	c.UnreachableAfter = cmp.Or(c.UnreachableAfter, 10*time.Second)
	c.ForceAfter = cmp.Or(c.ForceAfter, 5*time.Second)
	c.DenyAfter = cmp.Or(c.DenyAfter, 35*time.Second)
	c.RefusedFor = cmp.Or(c.RefusedFor, 30*time.Minute)
	return c
}

// Backend implements backend.Backend. It holds no state but its clients and may be used concurrently, also by several
// processes; two verbs for one provider's peering, or for one attempt, must not run at once.
type Backend struct {
	config  Config
	local   client.Client // the consumer
	watch   client.WithWatch
	open    opener // clients of providers
	graces  graces
	ends    ends // of credentials
	changes changes
	self    atomic.Pointer[identity] // this cluster's own, read once; nil before
}

var (
	_ backend.Backend   = (*Backend)(nil)
	_ backend.Leftovers = (*Backend)(nil)
	_ backend.Alive     = (*Backend)(nil)
)

// opener makes a client of the cluster that credentials lead to.
type opener func(ctx context.Context, credentials fleet.Credentials) (client.Client, error)

// New makes a Backend. It does not contact any cluster.
func New(config Config) (*Backend, error) {
	config = config.withDefaults()
	if config.Consumer == nil {
		return nil, fmt.Errorf("make liqo backend: %w: no access to the consumer cluster was given", backend.ErrInvalid)
	}
	if problems := validation.IsValidLabelValue(config.Hub); len(problems) > 0 {
		return nil, fmt.Errorf("make liqo backend: %w: hub %q: %s", backend.ErrInvalid, config.Hub, strings.Join(problems,
			"; "))
	}
	local, err := newConsumerClient(config.Consumer)
	if err != nil {
		return nil, fmt.Errorf("make liqo backend: open consumer cluster: %w", err)
	}
	watch, err := newClient(taming(config.Consumer), watchTimeout)
	if err != nil {
		return nil, fmt.Errorf("make liqo backend: watch consumer cluster: %w", err)
	}
	b := &Backend{config: config, local: local, watch: watch, graces: defaultGraces()}
	b.open = b.openCredentials
	return b, nil
}
