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
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/lead"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/told"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// Consumer is the cluster that a worker works for.
type Consumer struct {
	// UID tells the cluster from others. It waits until the cluster says it, or until ctx ends.
	UID func(ctx context.Context) (string, error)
	// Lead calls work while this process leads the hub.
	Lead func(ctx context.Context, work func(ctx context.Context))
	// Memory keeps what the observer knows for the next leader.
	Memory observer.Memory
	// Costs keeps the bills of the groups.
	Costs observer.Memory
}

// uidBound is how long the cluster may take to say who it is.
const uidBound = 10 * time.Second

// uidAgain is how soon it is asked again.
const uidAgain = 2 * time.Second

// ConsumerOf is the cluster of a worker that access reaches, or, without access, the simulated one. It notes in clocks
// how far this process's clock is ahead of the API server's.
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
			lead.Run(ctx, client, observer.Namespace, name, log, work)
		},
		UID: func(ctx context.Context) (string, error) { return awaitUID(ctx, client, log) }}, nil
}

// awaitUID asks until the cluster answers, or ctx ends.
func awaitUID(ctx context.Context, client kubernetes.Interface, log *slog.Logger) (string, error) {
	var hears told.Once
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

// Simulated is the consumer cluster of a simulated world.
func Simulated(w *sim.World, hub workflows.Hub) Consumer {
	return Consumer{UID: func(context.Context) (string, error) { return w.UID() }, Lead: w.Lead,
		Memory: observer.File(w.Path() + ".observer-" + hub.Name()),
		Costs:  observer.File(w.Path() + ".costs-" + hub.Name())}
}

// Times of OwnsHub.
const (
	ownsEvery = time.Minute
	ownsAgain = 5 * time.Second // while it is not known
)

// OwnsHub asks at once, and each minute until ctx ends, whether the hub belongs to the cluster of this process. It
// fails when the hub belongs to another cluster. The server serves meanwhile: calls that arrive before the first answer
// are carried out. Outside a cluster and without a kubeconfig OwnsHub does not know the cluster, and logs that once.
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
	var hears told.Once
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

// ClusterUID is the UID of a cluster's namespace kube-system, which every cluster has and keeps.
func ClusterUID(ctx context.Context, client kubernetes.Interface) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, uidBound)
	defer cancel()
	ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the consumer cluster who it is (get namespace kube-system): %w", err)
	}
	return string(ns.UID), nil
}
