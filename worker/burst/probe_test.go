package burst

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
)

// callLimit is the time for which Cluster Autoscaler waits for an answer of the gRPC server.
const callLimit = 5 * time.Second

// probe calls the gRPC server during a burst in the same way as Cluster Autoscaler. It uses its own group.
type probe struct {
	mu                        sync.Mutex
	increase, remove, refresh calls
}

type calls struct {
	took   []time.Duration
	failed int
	last   error
}

// run makes calls until stop is called.
func (p *probe) run(s *stack) (stop func()) {
	s.t.Helper()
	server, err := grpcserver.New(grpcserver.Options{Groups: s.groups, Specs: s.specs,
		Logger: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	require.NoError(s.t, server.Start(s.ctx))
	ctx, cancel := context.WithCancel(s.ctx)
	var running sync.WaitGroup
	every := func(d time.Duration, inTurn ...func()) {
		running.Go(func() {
			tick := time.NewTicker(d)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					running.Go(inTurn[n%len(inTurn)]) // on schedule, even when the previous call still runs
				}
			}
		})
	}
	// Cluster Autoscaler does not delete nodes in a loop in which it has scaled up (core/static_autoscaler.go), so the
	// probe never makes the two calls concurrently.
	every(time.Second/2, func() {
		p.time(ctx, &p.increase, func(ctx context.Context) error {
			_, err := server.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: probeGroup, Delta: 1})
			return err
		})
	}, func() {
		p.time(ctx, &p.remove, func(ctx context.Context) error { return removeOne(ctx, server) })
	})
	every(time.Second/5, func() {
		p.time(ctx, &p.refresh, func(ctx context.Context) error {
			_, err := server.Refresh(ctx, &protos.RefreshRequest{})
			return err
		})
	})
	return func() { cancel(); running.Wait() }
}

// removeOne deletes the oldest instance whose deletion has not begun.
func removeOne(ctx context.Context, server *grpcserver.Server) error {
	list, err := server.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: probeGroup})
	if err != nil {
		return err
	}
	for _, i := range list.GetInstances() {
		if i.GetStatus().GetInstanceState() == protos.InstanceStatus_instanceDeleting {
			continue
		}
		node := &protos.ExternalGrpcNode{Name: i.GetId(), ProviderID: i.GetId()}
		_, err := server.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{
			Id: probeGroup, Nodes: []*protos.ExternalGrpcNode{node},
		})
		return err
	}
	return errNothing
}

var errNothing = errors.New("there is nothing to delete yet") // not counted

func (p *probe) time(ctx context.Context, into *calls, call func(context.Context) error) {
	bounded, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	began := time.Now()
	err := call(bounded)
	if ctx.Err() != nil || errors.Is(err, errNothing) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	into.took = append(into.took, time.Since(began))
	if err != nil {
		into.failed, into.last = into.failed+1, err
	}
}

// least returns the smallest of the three numbers of calls: of increases, of deletions and of refreshes.
func (p *probe) least() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(len(p.increase.took), len(p.remove.took), len(p.refresh.took))
}

func (p *probe) print() {
	if p.least() == 0 {
		return
	}
	for _, k := range []struct {
		name string
		of   calls
	}{{"increase", p.increase}, {"delete", p.remove}, {"refresh", p.refresh}} {
		slices.Sort(k.of.took)
		n := len(k.of.took)
		p50 := k.of.took[(n-1)/2]
		for _, q := range []struct {
			name string
			at   int
		}{{"p50", (n - 1) / 2}, {"p99", (n - 1) * 99 / 100}, {"max", n - 1}} {
			v := k.of.took[q.at]
			bench("probe-"+k.name+"-"+q.name, v.Seconds()*1000, "ms", v.Seconds()/p50.Seconds(), "probe-"+k.name+"-p50")
		}
		bench("probe-"+k.name+"-failed", float64(k.of.failed), "calls", float64(k.of.failed)/float64(n), "calls")
		if k.of.last != nil {
			slog.Warn("a probe failed", "call", k.name, "last", k.of.last)
		}
	}
}
