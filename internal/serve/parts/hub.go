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

// Consumer holds the functions and stores of the consumer cluster that a worker needs.
type Consumer struct {
	// UID returns the UID that identifies the cluster. It blocks until the cluster responds or ctx ends.
	UID func(ctx context.Context) (string, error)
	// Lead waits until this process leads the hub and then calls work; it repeats this until ctx ends.
	Lead func(ctx context.Context, work func(ctx context.Context))
	// Memory stores the observer's state for the next leader.
	Memory observer.Memory
	// Costs stores the bills of the groups.
	Costs observer.Memory
	// Positions stores the positions of the groups that have just released instances.
	Positions observer.Shared
}

// uidBound limits the duration of one read of the cluster's UID.
const uidBound = 10 * time.Second

// uidRetry is the wait after a failed read.
const uidRetry = 2 * time.Second

// ConsumerOf returns the Consumer of the cluster to which the parameter access belongs, or of the simulated cluster if
// access is nil. It records in clocks by how much this process's clock is ahead of the API server's clock.
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
		Costs:     observer.ConfigMap{Client: client, Name: observer.CostsName(hub.Name())},
		Positions: observer.ConfigMap{Client: client, Name: name, Key: observer.PositionsKey},
		Lead: func(ctx context.Context, work func(context.Context)) {
			leader.Run(ctx, client, observer.Namespace, name, log, work)
		},
		UID: func(ctx context.Context) (string, error) { return awaitUID(ctx, client, log) }}, nil
}

// awaitUID returns the cluster's UID. It retries until the cluster responds or ctx ends, and logs each new error.
func awaitUID(ctx context.Context, client kubernetes.Interface, log *slog.Logger) (string, error) {
	var logged logonce.LastError
	for {
		uid, err := ClusterUID(ctx, client)
		if err == nil {
			return uid, nil
		}
		if logged.IsNew(err) {
			log.Warn("this worker waits for its cluster's API server", "error", err)
		}
		if !wait.For(ctx, uidRetry) {
			return "", err
		}
	}
}

// Simulated returns the Consumer of a simulated world. Its stores are files next to the world's file.
func Simulated(w *sim.World, hub workflows.Hub) Consumer {
	return Consumer{UID: func(context.Context) (string, error) { return w.UID() }, Lead: w.Lead,
		Memory:    observer.File(w.Path() + ".observer-" + hub.Name()),
		Costs:     observer.File(w.Path() + ".costs-" + hub.Name()),
		Positions: observer.File(w.Path() + ".positions-" + hub.Name())}
}

// These constants are the intervals of OwnsHub's checks.
const (
	ownsEvery = time.Minute
	ownsRetry = 5 * time.Second // before the first successful check
)

// OwnsHub checks immediately, and then every minute until ctx ends, whether the hub belongs to the cluster of this
// process. Before each check it passes the cluster's UID to the function known. It returns flow.ErrOtherCluster when
// the hub belongs to another cluster, and nil when ctx ends. The server accepts calls before the first check has
// succeeded. Outside a cluster and without a kubeconfig OwnsHub cannot check: it logs this once and returns nil.
func (f MarketFlags) OwnsHub(ctx context.Context, hub *flow.Hub, known func(uid string), log *slog.Logger) error {
	access, err := serve.Consumer(f.kubeconfig)
	if err != nil {
		log.Info("cannot check whether the hub belongs to this cluster: no access to a cluster", "error", err)
		return nil
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return fmt.Errorf("open consumer cluster: %w", err)
	}
	var logged logonce.LastError
	for pause := ownsRetry; ; {
		uid, err := ClusterUID(ctx, client)
		if err == nil {
			known(uid)
			bounded, cancel := context.WithTimeout(ctx, uidBound)
			err = hub.Check(bounded, uid)
			cancel()
		}
		switch {
		case errors.Is(err, flow.ErrOtherCluster):
			return err
		case err == nil:
			pause = ownsEvery
		case ctx.Err() == nil && logged.IsNew(err):
			log.Warn("cannot check whether the hub belongs to this cluster; trying again", "error", err)
		}
		if !wait.For(ctx, pause) {
			return nil
		}
	}
}

// ClusterUID returns the UID of a cluster's namespace kube-system, which identifies the cluster: every cluster has this
// namespace and never deletes it.
func ClusterUID(ctx context.Context, client kubernetes.Interface) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, uidBound)
	defer cancel()
	ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the identity of the consumer cluster (get namespace kube-system): %w", err)
	}
	return string(ns.UID), nil
}
