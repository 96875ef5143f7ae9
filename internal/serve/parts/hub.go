package parts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/leader"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// Consumer is the cluster that a worker serves.
type Consumer struct {
	// UID returns the UID that identifies the cluster. It waits until the cluster responds, or until ctx ends.
	UID func(ctx context.Context) (string, error)
	// Lead calls work while this process leads the hub.
	Lead func(ctx context.Context, work func(ctx context.Context))
	// Memory stores the observer's state for the next leader.
	Memory observer.Memory
	// Costs stores the bills of the groups.
	Costs observer.Memory
}

// uidBound bounds one read of the cluster's UID.
const uidBound = 10 * time.Second

// uidAgain is the time between two reads.
const uidAgain = 2 * time.Second

// ConsumerOf returns the cluster that access reaches, or, without access, the simulated cluster. It records in clocks
// how far this process's clock is ahead of the API server's clock.
func (f BackendFlags) ConsumerOf(hub workflows.Hub, access *rest.Config, clocks *metrics.Clocks,
	log *slog.Logger) (Consumer, error) {
	if access == nil {
		w, err := f.openWorld()
		if err != nil {
			return Consumer{}, err
		}
		return Simulated(w, hub), nil
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return Consumer{}, fmt.Errorf("open consumer cluster: %w", err)
	}
	name := observer.Name(hub.Name())
	ahead := func(d time.Duration) { clocks.Set(metrics.ClockOfAPIServer, d) }
	return Consumer{Memory: observer.ConfigMap{Client: client, Name: name, Ahead: ahead},
		Costs: observer.ConfigMap{Client: client, Name: observer.CostsName(hub.Name())},
		Lead: func(ctx context.Context, work func(context.Context)) {
			leader.Run(ctx, client, observer.Namespace, name, log, work)
		},
		UID: func(ctx context.Context) (string, error) { return awaitUID(ctx, client, log) }}, nil
}

// awaitUID retries until the cluster responds, or ctx ends. It logs each new error.
func awaitUID(ctx context.Context, client kubernetes.Interface, log *slog.Logger) (string, error) {
	var hears logonce.LastError
	for {
		uid, err := ClusterUID(ctx, client)
		if err == nil {
			return uid, nil
		}
		if hears.IsNew(err) {
			log.Warn("this worker waits for its cluster", "error", err)
		}
		if !wait.For(ctx, uidAgain) {
			return "", err
		}
	}
}

// Simulated returns the consumer cluster of a simulated world.
func Simulated(w *sim.World, hub workflows.Hub) Consumer {
	return Consumer{UID: func(context.Context) (string, error) { return w.UID() }, Lead: w.Lead,
		Memory: observer.File(w.Path() + ".observer-" + hub.Name()),
		Costs:  observer.File(w.Path() + ".costs-" + hub.Name())}
}

// These are the times of OwnsHub.
const (
	ownsEvery = time.Minute
	ownsAgain = 5 * time.Second // until the first answer
)

// OwnsHub checks immediately, and each minute until ctx ends, whether the hub belongs to the cluster of this process.
// It fails when the hub belongs to another cluster. The server accepts calls before the first answer. Outside a cluster
// and without a kubeconfig OwnsHub does not know the cluster: it logs that once and returns nil.
func (f MarketFlags) OwnsHub(ctx context.Context, hub *flow.Hub, log *slog.Logger) error {
	access, err := serve.Consumer(f.kubeconfig)
	if err != nil {
		log.Info("this process does not know its cluster, so it cannot tell whether the hub belongs to it", "why", err)
		return nil
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return fmt.Errorf("open consumer cluster: %w", err)
	}
	var hears logonce.LastError
	for pause := ownsAgain; ; {
		uid, err := ClusterUID(ctx, client)
		if err == nil {
			bounded, cancel := context.WithTimeout(ctx, uidBound)
			err = hub.Check(bounded, uid)
			cancel()
		}
		switch {
		case errors.Is(err, flow.ErrOtherCluster):
			return err
		case err == nil:
			pause = ownsEvery
		case ctx.Err() == nil && hears.IsNew(err):
			log.Warn("nobody can tell whether the hub belongs to this cluster; trying again", "error", err)
		}
		if !wait.For(ctx, pause) {
			return nil
		}
	}
}

// ClusterUID returns the UID of a cluster's namespace kube-system, which every cluster has and keeps.
func ClusterUID(ctx context.Context, client kubernetes.Interface) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, uidBound)
	defer cancel()
	ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the consumer cluster who it is (get namespace kube-system): %w", err)
	}
	return string(ns.UID), nil
}
