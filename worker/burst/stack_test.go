package burst

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/file"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/workertest"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

const (
	queue      = "burst"
	probeGroup = "probe"
	lane       = "burst" // the label by which groups select offers; the probe group selects its own provider
	parallel   = 8       // concurrent calls
	look       = 50 * time.Millisecond
)

var shapeOfNodes = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	corev1.ResourcePods: resource.MustParse("110"),
}

// stack is a new Temporal server with our worker, a worker of the baseline, and the groups of one shape.
type stack struct {
	t        *testing.T
	ctx      context.Context
	shape    shape
	delays   sim.Delays
	world    *sim.World
	temporal client.Client
	beats    heartbeats
	groups   *flow.Groups
	specs    []fleet.GroupSpec // the probe group is the last
}

func newStack(t *testing.T, sh shape, disk bool) *stack {
	t.Helper()
	s := &stack{t: t, ctx: t.Context(), shape: sh}
	s.delays = sim.Delays{
		Peer: 300 * time.Millisecond, Join: 500 * time.Millisecond, Leave: 200 * time.Millisecond,
		Unpeer: 200 * time.Millisecond,
	}
	dir := t.TempDir()
	s.temporal = startServer(t, dir, disk, &s.beats)
	var err error
	s.world, err = sim.Open(filepath.Join(dir, "world"))
	require.NoError(t, err)
	require.NoError(t, s.world.SetDelays(s.ctx, s.delays))
	b := sim.New(s.world, sim.Options{})
	source, err := file.Open(s.writeOffers(dir))
	require.NoError(t, err)
	s.groups = flow.NewGroups(s.temporal, "", queue)

	ctx, stop := context.WithCancel(context.Background())
	ended, started := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- worker.Run(ctx, worker.Options{
			Temporal: s.temporal, TaskQueue: queue, Backend: b, Catalog: discovery.Resolve(source, b, discovery.Options{}),
			Logger: slog.New(slog.DiscardHandler), StopTimeout: time.Second, Started: func() { close(started) },
			SearchAttributes: true, DriverSlots: *slots,
		})
	}()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	<-started
	s.startBare()
	for i := range sh.groups + 1 {
		id, group := fmt.Sprintf("g%d", i), "load"
		if i == sh.groups {
			id, group = probeGroup, probeGroup
		}
		s.specs = append(s.specs, fleet.GroupSpec{
			Max: 1000, InstanceSpec: fleet.InstanceSpec{ID: id, Shape: shapeOfNodes, Budgets: fleet.Budgets{}.WithDefaults(),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{lane: group}}},
		})
	}
	s.each(s.specs, func(ctx context.Context, g fleet.GroupSpec) error {
		_, err := s.groups.Configure(ctx, g, fleet.GroupNotice{}, fleet.Position{})
		return err
	})
	return s
}

// startServer starts a dev server in the same way as make run. If disk is true, the database is on a disk.
func startServer(t *testing.T, dir string, disk bool, beats *heartbeats) client.Client {
	t.Helper()
	cli, err := workertest.TemporalCLI("../../bin")
	require.NoError(t, err)
	args := []string{"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000"}
	for _, name := range []string{"LiqoGroup", "LiqoInstance", "LiqoProvider", "LiqoPhase"} {
		args = append(args, "--search-attribute", name+"=Keyword")
	}
	if !disk {
		args = append(args, "--sqlite-pragma", "synchronous=OFF")
	}
	quiet := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	server, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath: cli, LogLevel: "error", DBFilename: filepath.Join(dir, "temporal.db"), ExtraArgs: args,
		ClientOptions: &client.Options{Logger: quiet, ConnectionOptions: client.ConnectionOptions{
			DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(beats.see)},
		}}, Stdout: io.Discard, Stderr: io.Discard,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	return server.Client()
}

// heartbeats counts the heartbeats of activities that reach the server. Temporal bills each as an action and writes no
// event for it.
type heartbeats struct {
	mu   sync.Mutex
	sent []time.Time
}

func (h *heartbeats) see(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if strings.HasSuffix(method, "/RecordActivityTaskHeartbeat") {
		h.mu.Lock()
		h.sent = append(h.sent, time.Now())
		h.mu.Unlock()
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (h *heartbeats) between(from, to time.Time) (n float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range h.sent {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// writeOffers makes the providers of the shape and one provider for the probe group. All have the same price.
func (s *stack) writeOffers(dir string) string {
	s.t.Helper()
	var text strings.Builder
	text.WriteString("offers:\n")
	linger := 0
	if s.shape.warm {
		linger = 3600 // the peering of the probe group stays
	}
	add := func(name, group string, room int) {
		fmt.Fprintf(&text, "- {name: %s, credentials: {secretRef: {namespace: sim, name: %s}}, labels: {%s: %s}, price: 1,\n"+
			"   lingerSeconds: %d, lendable: {cpu: %d, memory: %dGi, pods: %d}}\n",
			name, name, lane, group, linger, room, room, 110*room)
		capacity := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(room), resource.DecimalSI)}
		require.NoError(s.t, s.world.AddProvider(s.ctx, name, capacity))
	}
	for i := range s.shape.providers {
		add(fmt.Sprintf("p%d", i), "load", s.shape.room)
	}
	add("probe", probeGroup, 100)
	path := filepath.Join(dir, "offers.yaml")
	require.NoError(s.t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

// load returns the groups of the shape.
func (s *stack) load() []fleet.GroupSpec { return s.specs[:s.shape.groups] }

// The method `each` calls the function for each group, with bounded concurrency.
func (s *stack) each(specs []fleet.GroupSpec, call func(context.Context, fleet.GroupSpec) error) {
	s.t.Helper()
	g, ctx := errgroup.WithContext(s.ctx)
	g.SetLimit(parallel)
	for _, spec := range specs {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return call(ctx, spec)
		})
	}
	require.NoError(s.t, g.Wait())
}

// scaleOut grows each group by the number of instances of the shape. When all instances are Ready, it returns the
// duration and the number of their attempts.
func (s *stack) scaleOut() (took time.Duration, attempts int) {
	s.t.Helper()
	want := s.shape.instances
	if s.shape.name == "alone" {
		want += len(s.snapshot(s.specs[0]).Instances)
	}
	began := time.Now()
	s.each(s.load(), func(ctx context.Context, g fleet.GroupSpec) error {
		_, err := s.groups.Grow(ctx, g.ID, s.shape.instances, 0, fleet.Position{})
		return err
	})
	var tried atomic.Int64
	s.until(func(snap fleet.Snapshot) bool {
		sum := 0
		for _, i := range snap.Instances {
			require.NotEqual(s.t, fleet.Failed, i.Phase, "%s: %+v", i.Name, i.Failure)
			if i.Phase != fleet.Ready {
				return false
			}
			sum += i.Attempt
		}
		if len(snap.Instances) != want {
			return false
		}
		tried.Add(int64(sum))
		return true
	})
	return time.Since(began), int(tried.Load())
}

// scaleIn releases all instances of the shape and returns once all are released.
func (s *stack) scaleIn() time.Duration { return s.release(s.shape.instances) }

// release releases the youngest n instances of each group.
func (s *stack) release(n int) time.Duration {
	s.t.Helper()
	left := 0
	names := map[string][]string{}
	for _, g := range s.load() {
		instances := s.snapshot(g).Instances
		left = len(instances) - n
		for _, i := range instances[left:] {
			names[g.ID] = append(names[g.ID], i.Name)
		}
	}
	began := time.Now()
	s.each(s.load(), func(ctx context.Context, g fleet.GroupSpec) error {
		_, err := s.groups.Release(ctx, g.ID, names[g.ID], fleet.Position{})
		return err
	})
	s.until(func(snap fleet.Snapshot) bool { return len(snap.Instances) == left })
	return time.Since(began)
}

func (s *stack) snapshot(g fleet.GroupSpec) fleet.Snapshot {
	s.t.Helper()
	snap, err := s.groups.Snapshot(s.ctx, g.ID)
	require.NoError(s.t, err)
	return snap
}

// The method `until` waits until each group of the shape has met the condition once. It waits for one group after
// another, so that fifty groups cost the server no more reads than one group.
func (s *stack) until(want func(fleet.Snapshot) bool) {
	s.t.Helper()
	late := time.Now().Add(*limit)
	for _, g := range s.load() {
		for snap := s.snapshot(g); !want(snap); snap = s.snapshot(g) {
			if time.Now().After(late) {
				s.t.Fatalf("group %s is not there after %s; its instances by phase: %v", g.ID, *limit, phases(snap))
			}
			s.wait(look)
		}
	}
}

func phases(snap fleet.Snapshot) map[fleet.Phase]int {
	n := map[fleet.Phase]int{}
	for _, i := range snap.Instances {
		n[i.Phase]++
	}
	return n
}

// settle waits until the providers of the shape have neither a peering nor a slice.
func (s *stack) settle() {
	s.t.Helper()
	late := time.Now().Add(*limit)
	for {
		w, err := s.world.Snapshot()
		require.NoError(s.t, err)
		left := len(w.Consumer.Peerings) + len(w.Consumer.Slices)
		for _, o := range w.Consumer.Peerings {
			if o.Provider == probeGroup {
				left--
			}
		}
		for _, o := range w.Consumer.Slices {
			if o.Provider == probeGroup {
				left--
			}
		}
		if left == 0 {
			return
		}
		require.True(s.t, time.Now().Before(late), "%d peerings and slices are left after %s", left, *limit)
		s.wait(look)
	}
}

// quiet waits until Temporal has written and listed the histories of the latest events.
func (s *stack) quiet() { s.wait(3 * time.Second) }

func (s *stack) wait(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}
