package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/notices"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// publishes opens what a worker shows others: the market, and what its steps do, as Events until ctx ends. Each is nil
// where there is none: a consumer that is simulated has no Events.
func (f workerFlags) publishes(ctx context.Context, hub workflows.Hub,
	consumer *rest.Config) (market.Store, activities.Notices, error) {
	store, err := f.market.open(string(hub), func() (*rest.Config, error) { return consumer, nil })
	if err != nil || consumer == nil {
		return store, nil, err
	}
	client, err := notices.NewClient(consumer)
	if err != nil {
		return nil, nil, err
	}
	about := types.NamespacedName{Namespace: f.market.namespace, Name: market.ConfigMapName(string(hub))}
	return store, notices.New(ctx, client, about), nil
}
