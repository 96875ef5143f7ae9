package parts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/mirror"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// MirrorFlags holds the namespace for the objects through which kubectl get shows groups and offers.
type MirrorFlags struct{ namespace string }

// Register adds the flag.
func (f *MirrorFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.namespace, "mirror-namespace", "",
		"namespace of the consumer cluster for objects that show node groups and offers in kubectl get; \"\" for none")
}

// Open returns the mirror, which writes the objects for kubectl get. It also returns a store that writes the market to
// the given store and passes the market's offers to the mirror. Without the flag, Open returns nil and the given
// store.
func (f MirrorFlags) Open(store market.Store, hub workflows.Hub, consumer *rest.Config,
	log *slog.Logger) (observer.Mirror, market.Store, error) {
	if f.namespace == "" {
		return nil, store, nil
	}
	if consumer == nil {
		return nil, nil, errors.New("--mirror-namespace needs a consumer cluster: use --backend liqo")
	}
	client, err := dynamic.NewForConfig(consumer)
	if err != nil {
		return nil, nil, fmt.Errorf("open consumer cluster for the mirror: %w", err)
	}
	m := mirror.New(mirror.Cluster{Client: client, Namespace: f.namespace, Hub: hub.Name()}, log)
	if store == nil {
		return m, nil, nil
	}
	return m, mirrored{store, m}, nil
}

// mirrored is a store of the market that also passes the market's offers to the mirror.
type mirrored struct {
	market.Store
	mirror *mirror.Mirror
}

// Save implements market.Store.
func (s mirrored) Save(ctx context.Context, m market.Market) error {
	s.mirror.Offers(m.Offers)
	return s.Store.Save(ctx, m)
}
