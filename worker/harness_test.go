package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/file"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/workertest"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// devServer is the address of the Temporal dev server that all tests of this package share. Each test has its own task
// queue, group and providers.
var devServer string

func TestMain(m *testing.M) {
	flag.Parse()
	if !*record { // recorded histories have the real intervals
		fleet.ResendAfter = never
	}
	if os.Getenv(envWorld) != "" {
		os.Exit(workerProcess())
	}
	os.Exit(run(m))
}

// The variable `never` contains the intervals after which drivers repeat an acquire (a request for a hold on a
// provider). These intervals are longer than any wait of a test, because an answer must arrive without a repetition.
var never = []time.Duration{time.Hour, time.Hour, time.Hour}

// asking shortens the interval at which a driver repeats an acquire. Only the test of this repetition uses it. No
// other test may run concurrently.
func asking(t *testing.T) {
	before := fleet.ResendAfter
	t.Cleanup(func() { fleet.ResendAfter = before })
	fleet.ResendAfter = []time.Duration{2 * time.Second, 30 * time.Second, 30 * time.Second}
}

func run(m *testing.M) int {
	cli, err := workertest.TemporalCLI("../bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := os.Stat("/dev/shm"); err == nil { // a database on a disk makes everything three times as slow
		_ = os.Setenv("TMPDIR", "/dev/shm")
	}
	dir, err := os.MkdirTemp("", "liqo-autoscaler-worker")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	s, err := testsuite.StartDevServer(context.Background(), testsuite.DevServerOptions{
		ExistingPath: cli, LogLevel: "error", DBFilename: filepath.Join(dir, "temporal.db"),
		ClientOptions: &client.Options{Logger: quiet()}, SearchAttributes: searchAttributes(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the Temporal dev server:", err)
		return 1
	}
	defer func() { _ = s.Stop() }()
	devServer = s.FrontendHostPort()
	return m.Run()
}

// shortRuns moves the scene to its own server, which suggests a continue-as-new after a few events. The test calls it
// before the worker starts.
func (s *scene) shortRuns() *scene {
	s.t.Helper()
	s.t.Cleanup(s.ownServer(nil, "--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=25"))
	return s
}

// ownServer moves the scene to its own server. The server's database is temporal.db, and stop ends the server.
func (s *scene) ownServer(options []grpc.DialOption, args ...string) (stop func()) {
	s.t.Helper()
	cli, err := workertest.TemporalCLI("../bin")
	require.NoError(s.t, err)
	server, err := testsuite.StartDevServer(s.ctx, testsuite.DevServerOptions{
		ExistingPath: cli, LogLevel: "error", DBFilename: filepath.Join(s.dir, "temporal.db"),
		ClientOptions:    &client.Options{Logger: quiet(), ConnectionOptions: client.ConnectionOptions{DialOptions: options}},
		SearchAttributes: searchAttributes(), ExtraArgs: args,
	})
	require.NoError(s.t, err)
	s.temporal = server.Client()
	s.groups = flow.NewGroups(s.temporal, s.hub, s.queue)
	return func() { _ = server.Stop() }
}

// neverLeads prevents a worker from leading its hub, so that the worker does not run the observer. All repairs then
// come from the steps under test. A scene that needs rounds has its own hub, see newHubScene.
func neverLeads(ctx context.Context, _ func(context.Context)) { <-ctx.Done() }

func quiet() sdklog.Logger { return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// scene is the environment of one test: a world with providers, their offers, a worker and a node group.
type scene struct {
	t         testing.TB
	observer  *observer.Observer // only in a scene with its own hub
	ctx       context.Context
	dir       string
	world     *sim.World
	hub       workflows.Hub
	queue     string
	temporal  client.Client
	groups    *flow.Groups
	spec      fleet.GroupSpec
	providers []string
	kept      map[string]int // recorded histories, by type
	tracing   []interceptor.WorkerInterceptor
}

var scenes atomic.Int64

// quick lists the tests of this package that also run with -short. They cover the life of an instance, a killed
// worker, refusals and a recovery. The other tests take minutes.
var quick = []string{
	"TestLifeOfAnInstance", "TestWorkerKilledWhilePeering", "TestLastFailureReachesCA",
	"TestTerminatedGroupRecoversFromObjects", "TestRefusedOperationsChangeNothing",
}

// newScene makes a world with n providers. The first provider is the cheapest. newScene starts no worker.
func newScene(t testing.TB, n int, change ...func(*fleet.GroupSpec)) *scene {
	t.Helper()
	return newSceneOf(t, newID(), "", n, change...)
}

// newHubScene makes a scene with its own hub. The scene's worker runs the observer.
func newHubScene(t testing.TB, n int, change ...func(*fleet.GroupSpec)) *scene {
	t.Helper()
	id := newID()
	return newSceneOf(t, id, workflows.Hub("hub-"+id), n, change...)
}

func newID() string { return fmt.Sprintf("t%d", scenes.Add(1)) }

// newSceneOf makes a scene in a hub. Its group and providers may have the same names as in the scene of another hub.
func newSceneOf(t testing.TB, id string, hub workflows.Hub, n int, change ...func(*fleet.GroupSpec)) *scene {
	t.Helper()
	if name, _, _ := strings.Cut(t.Name(), "/"); !slices.Contains(quick, name) {
		testkit.Slow(t)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	s := &scene{t: t, ctx: ctx, dir: t.TempDir(), hub: hub, queue: id}
	var err error
	s.world, err = sim.Open(filepath.Join(s.dir, "world.json"))
	require.NoError(t, err)
	require.NoError(t, s.world.SetDelays(ctx, sim.Delays{}))
	var offers strings.Builder
	offers.WriteString("offers:\n")
	for i := range n {
		p := fmt.Sprintf("%s-p%d", id, i+1)
		s.providers = append(s.providers, p)
		require.NoError(t, s.world.AddProvider(ctx, p, nil))
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, p+".kubeconfig"), append(s.world.Kubeconfig(p),
			"# token: "+s.secret(p)+"\n"...), 0o600))
		fmt.Fprintf(&offers, "- {name: %s, credentials: {kubeconfigFile: %s.kubeconfig}, lendable: {cpu: 8, memory: 16Gi, "+
			"pods: 440}, price: %d, lingerSeconds: 0}\n", p, p, i+1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "offers.yaml"), []byte(offers.String()), 0o600))
	s.temporal, err = client.Dial(client.Options{HostPort: devServer, Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(s.temporal.Close)
	s.groups = flow.NewGroups(s.temporal, hub, s.queue)
	s.spec = fleet.GroupSpec{
		Max: 4, InstanceSpec: fleet.InstanceSpec{ID: id, Shape: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
			corev1.ResourcePods: resource.MustParse("110"),
		},
			Budgets: fleet.Budgets{Peer: seconds(180), Join: seconds(180), Total: seconds(600), Drain: seconds(5)}},
	}
	for _, c := range change {
		c(&s.spec)
	}
	return s
}

func seconds(n float64) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n * float64(time.Second))}
}

// secret returns the secret part of the provider's credentials file. It must not appear in any other place (invariant
// I10).
func (s *scene) secret(provider string) string { return "s3cr3t-" + s.queue + "-" + provider }

// options returns the options of a worker of this scene.
func options(t client.Client, world *sim.World, queue, offers string) (worker.Options, error) {
	b := sim.New(world, sim.Options{Report: 200 * time.Millisecond})
	source, err := file.Open(offers)
	return worker.Options{
		Temporal: t, TaskQueue: queue, Backend: b, Catalog: discovery.Resolve(source, b,
			discovery.Options{KeepFailure: time.Second}),
		StopTimeout: time.Second, Logger: slog.New(slog.DiscardHandler), SearchAttributes: true, Lead: neverLeads,
	}, err
}

// work starts a worker in this process, and configures the group.
func (s *scene) work(change ...func(*worker.Options)) *scene {
	s.t.Helper()
	s.workUnchecked(change...)
	s.t.Cleanup(s.replay)
	return s
}

// workUnchecked is like work, but does not replay all histories at the end. A replay needs Temporal to run longer than
// the test's body.
func (s *scene) workUnchecked(change ...func(*worker.Options)) {
	s.t.Helper()
	o, err := options(s.temporal, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(s.t, err)
	if o.Hub = s.hub; s.hub != "" {
		s.observer = &observer.Observer{Memory: observer.File(s.world.Path() + ".observer"),
			Costs:     observer.File(s.world.Path() + ".costs"),
			Positions: observer.File(s.world.Path() + ".positions")}
		o.Lead, o.Observer = s.world.Lead, s.observer
		o.Cluster, err = s.world.UID()
		require.NoError(s.t, err)
	}
	for _, c := range change {
		c(&o)
	}
	s.start(o)
	s.configure()
}

// start runs a worker in this process until stop is called, or the test ends.
func (s *scene) start(o worker.Options) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx, o) }()
	stop = sync.OnceFunc(func() { cancel(); require.NoError(s.t, <-ended) })
	s.t.Cleanup(stop)
	return stop
}

func (s *scene) configure() fleet.Snapshot {
	s.t.Helper()
	at, err := s.groups.Configure(s.ctx, s.spec, fleet.GroupNotice{}, fleet.Position{})
	return s.shows(at, err)
}

func (s *scene) grow(n int) fleet.Snapshot {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute) // the worker may still be starting
	defer cancel()
	at, err := s.groups.Grow(ctx, s.spec.ID, n, 0, fleet.Position{})
	return s.shows(at, err)
}

func (s *scene) release(names ...string) fleet.Snapshot {
	s.t.Helper()
	at, err := s.groups.Release(s.ctx, s.spec.ID, names, fleet.Position{})
	return s.shows(at, err)
}

// shows returns the snapshot of the group as soon as it has reached the position of an operation.
func (s *scene) shows(at fleet.Position, err error) fleet.Snapshot {
	s.t.Helper()
	require.NoError(s.t, err)
	snap := s.snapshot()
	require.False(s.t, snap.Position().Before(at), "it shows %v after %v", snap.Position(), at)
	return snap
}

func (s *scene) snapshot() fleet.Snapshot {
	s.t.Helper()
	snap, err := s.groups.Snapshot(s.ctx, s.spec.ID)
	require.NoError(s.t, err)
	return snap
}

// The method `until` waits until the group's snapshot meets the condition.
func (s *scene) until(what string, want func(fleet.Snapshot) bool) fleet.Snapshot {
	s.t.Helper()
	var last seen[fleet.Snapshot]
	require.Eventuallyf(s.t, func() bool {
		snap, err := s.groups.Snapshot(s.ctx, s.spec.ID)
		return err == nil && want(last.is(snap))
	}, waitLimit, waitTick, "%s; last: %s", what, &last)
	return *last.Load()
}

// seen holds the last value that a condition has read. It is atomic, because the condition may still run while the test
// prints the value after a timeout.
type seen[T any] struct{ atomic.Pointer[T] }

func (s *seen[T]) is(v T) T {
	s.Store(&v)
	return v
}

func (s *seen[T]) String() string {
	text, err := json.Marshal(s.Load())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// allIn waits until the group has exactly n instances, all in one phase.
func (s *scene) allIn(phase fleet.Phase, n int) fleet.Snapshot {
	s.t.Helper()
	return s.until(fmt.Sprintf("%d instances %s", n, phase), func(snap fleet.Snapshot) bool {
		for _, i := range snap.Instances {
			if i.Phase != phase {
				return false
			}
		}
		return len(snap.Instances) == n
	})
}

// empty waits until the world has no object of ours (invariant I9).
func (s *scene) empty() {
	s.t.Helper()
	s.counts("the world is empty", func(c sim.Counts) bool { return c == sim.Counts{} })
}

func (s *scene) counts(what string, want func(sim.Counts) bool) {
	s.t.Helper()
	var last seen[sim.Counts]
	require.Eventuallyf(s.t, func() bool {
		w, err := s.world.Snapshot()
		return err == nil && want(last.is(w.Counts()))
	}, waitLimit, waitTick, "%s; last: %s; %s", what, &last, s)
}

// String returns the published states of the entities. The message of a test that waited in vain contains them.
func (s *scene) String() string {
	entities := flow.NewEntities(s.temporal, s.hub, s.queue)
	groups, err := entities.Groups(s.ctx)
	providers, err2 := entities.Providers(s.ctx)
	text, err3 := json.Marshal([]any{groups, providers})
	return fmt.Sprintf("published: %s, %v", text, errors.Join(err, err2, err3))
}

// knobs sets the faults of the n-th provider.
func (s *scene) knobs(n int, k sim.Knobs) {
	s.t.Helper()
	require.NoError(s.t, s.world.SetKnobs(s.ctx, s.providers[n], k))
}

// waitLimit and waitTick are the limit and the interval of the tests' waits for conditions. The limit is shorter than
// the two minutes after which a group checks a silent driver.
const (
	waitLimit = 100 * time.Second
	waitTick  = 20 * time.Millisecond
)
