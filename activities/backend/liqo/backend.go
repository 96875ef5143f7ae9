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

// Config contains the settings of New. Only Consumer is required.
type Config struct {
	// Consumer is the client configuration for the consumer, which is the cluster that CA scales.
	Consumer *rest.Config
	// Hub distinguishes the installations on one cluster; it must be a label value. Default "default".
	Hub string
	// LiqoNamespace is the namespace in which this backend searches for Liqo first, on every cluster. Default "liqo".
	LiqoNamespace string
	// UnreachableAfter is the time for which a provider may be silent without interruption before Establish and Join
	// fail with ErrUnreachable. Default 10s.
	UnreachableAfter time.Duration
	// ForceAfter is the time after the start of Return during which pods may terminate on their own. Afterwards Return
	// deletes them with grace period 0. It must be short, because Liqo removes virtual nodes one at a time and waits
	// for the pods of each. Default 5s.
	ForceAfter time.Duration
	// DenyAfter is the time in which a denied authentication of a slice may still become accepted. Liqo waits 30 s for
	// the certificate's signer, and also reports Denied while the signer is slow (remoteresourceslice_controller.go,
	// certificateIdentityProvider.go). Default 35s.
	DenyAfter time.Duration
	// TenantRights, if set, lists the permissions that the worker's account must grant itself before it may read
	// Secrets in a tenant namespace.
	TenantRights *TenantRights
	// AnyLiqo allows peerings between clusters whose versions of Liqo are incompatible or newer than this release. It
	// also allows several nodes on one provider when this cluster's version of Liqo loses pods of a provider with
	// several nodes.
	AnyLiqo bool
	// RefusedFor is the time for which this backend does not use a provider that has removed our Tenant. Default 30m.
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

// Backend implements backend.Backend. It has no state except its clients and caches, and is safe for concurrent use,
// even by several processes. Callers must not run two verbs for the same peering, or for the same attempt,
// concurrently.
type Backend struct {
	config  Config
	local   client.Client // the consumer
	watch   client.WithWatch
	open    opener // opens clients of providers
	graces  graces
	ends    ends // the validity of credentials in use
	changes changes
	self    atomic.Pointer[identity] // this cluster's identity, read once; nil before that
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
	watch, err := newClient(limitAnswers(config.Consumer), watchTimeout)
	if err != nil {
		return nil, fmt.Errorf("make liqo backend: watch consumer cluster: %w", err)
	}
	b := &Backend{config: config, local: local, watch: watch, graces: defaultGraces()}
	b.open = b.openCredentials
	return b, nil
}
