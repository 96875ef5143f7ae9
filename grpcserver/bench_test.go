package grpcserver

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

const foreignNodes = 500

// One CA loop calls NodeGroupForNode up to seven times for each foreign node, sequentially and without a cache. The
// benchmark shows the cost for a large cluster. It compares this cost with the cost of an empty RPC: the connection
// is the same, and the handler does nothing.
func BenchmarkNodeGroupForNode(b *testing.B) {
	f := newFake()
	s := loaded(b, f, spec("cpu", 0, 100), spec("gpu", 0, 100))
	c := overLoopback(b, s)
	require.NoError(b, c.increase("cpu", 50))

	foreign := make([]*protos.NodeGroupForNodeRequest, foreignNodes)
	for i := range foreign {
		name := fmt.Sprintf("worker-%03d", i)
		foreign[i] = &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{
			Name: name, ProviderID: "aws:///eu-central-1a/i-0" + name,
			Labels: map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"node.kubernetes.io/instance-type": "m6i.xlarge", "topology.kubernetes.io/zone": "eu-central-1a"},
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		}}
	}
	own := make([]*protos.NodeGroupForNodeRequest, 0, 50)
	for _, id := range c.ids("cpu") {
		own = append(own, &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{Name: id, ProviderID: id}})
	}
	ctx := context.Background()
	ask := func(reqs []*protos.NodeGroupForNodeRequest) func(i int) error {
		return func(i int) error {
			_, err := c.NodeGroupForNode(ctx, reqs[i%len(reqs)])
			return err
		}
	}
	// The three benchmarks alternate after each call, so that a busy machine slows each benchmark equally.
	var empty, foreigners, ours []time.Duration
	i := 0
	for b.Loop() {
		empty = append(empty, timed(b, i,
			func(int) error { _, err := c.GPULabel(ctx, &protos.GPULabelRequest{}); return err }))
		foreigners = append(foreigners, timed(b, i, ask(foreign)))
		ours = append(ours, timed(b, i, ask(own)))
		i++
	}
	report(b, "NodeGroupForNode-foreign-p50", foreigners, empty, 50)
	report(b, "NodeGroupForNode-foreign-p99", foreigners, empty, 99)
	report(b, "NodeGroupForNode-own-p50", ours, empty, 50)
}

// The benchmark reads the instances of a group of 1000 instances, which is the largest possible answer.
func BenchmarkNodeGroupNodes(b *testing.B) {
	c := overLoopback(b, loaded(b, newFake(), spec("cpu", 0, 1000)))
	require.NoError(b, c.increase("cpu", 1000))
	ctx := context.Background()
	var empty, nodes []time.Duration
	for b.Loop() {
		empty = append(empty, timed(b, 0,
			func(int) error { _, err := c.GPULabel(ctx, &protos.GPULabelRequest{}); return err }))
		nodes = append(nodes, timed(b, 0, func(int) error {
			_, err := c.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: "cpu"})
			return err
		}))
	}
	report(b, "NodeGroupNodes-1000-p50", nodes, empty, 50)
}

func timed(b *testing.B, i int, call func(i int) error) time.Duration {
	began := time.Now()
	err := call(i)
	took := time.Since(began)
	if err != nil {
		b.Fatal(err)
	}
	return took
}

// report prints the line that "make bench" collects: the value, and its ratio to the time of an empty handler on the
// same connection.
func report(b *testing.B, name string, took, against []time.Duration, percent int) {
	value, base := percentile(took, percent), percentile(against, percent)
	ratio := float64(value) / float64(base)
	b.ReportMetric(float64(value.Nanoseconds())/1e3, name+"-µs")
	b.ReportMetric(ratio, name+"-x-empty")
	fmt.Printf("BENCH %s %.1f us %.2f empty-handler\n", name, float64(value.Nanoseconds())/1e3, ratio)
}

func percentile(d []time.Duration, percent int) time.Duration {
	slices.Sort(d)
	return d[(len(d)-1)*percent/100]
}

func overLoopback(b *testing.B, s *Server) client {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, s, ServeOptions{}) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, conn.Close())
		cancel()
		require.NoError(b, <-done)
	})
	return client{t: b, CloudProviderClient: protos.NewCloudProviderClient(conn)}
}
