//go:build externalgrpc

package inprocess

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca/core"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/derive"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider"
	caconfig "k8s.io/autoscaler/cluster-autoscaler/config"
	cacore "k8s.io/autoscaler/cluster-autoscaler/core"
	"k8s.io/autoscaler/cluster-autoscaler/debuggingsnapshot"
	"k8s.io/autoscaler/cluster-autoscaler/expander"
)

// world is a cluster with Cluster Autoscaler, a gRPC server, and providers.
type world struct {
	t    *testing.T
	ctx  context.Context
	pace time.Duration // time between two loops
	time atomic.Pointer[time.Time]

	kube     *fake.Clientset
	watching sync.Map // resources that CA's informers watch
	informer informers.SharedInformerFactory
	options  caconfig.AutoscalingOptions
	ca       cacore.Autoscaler
	requests *core.Requests // set with ProvisioningRequestEnabled
	proxy    *ca.Proxy
	told     int    // sequence number of the last call that loops has returned
	fails    bool   // calls of CA may fail
	address  string // address of the gRPC server
	stop     func() // stops the server
	serving  grpcserver.ServeOptions

	groups *groups
	next   atomic.Pointer[config.Config] // the config for the next Refresh
	// offers holds the total amounts of the providers. holds contains the amounts that instances have taken.
	offers    []market.Offer
	holds     map[string]hold
	published atomic.Pointer[market.Market]

	failing  map[string]*fleet.Failure // groups whose scale-outs fail immediately
	hanging  map[string]bool           // groups whose scale-outs never end
	draining bool                      // scale-ins never end
	dead     map[string]bool           // providers that are away
	outlook  comparison.Outlook        // state of the comparison's last round
	round    int64
	standing map[string]fleet.Standing // faults of providers by the comparison
}

// patience is the timeout for background work on a busy machine.
const patience = 2 * time.Minute

type hold struct {
	provider string
	shape    corev1.ResourceList
}

const shapes = "defaults: {max: 10, shape: {cpu: '2', memory: 4Gi, pods: '110', ephemeral-storage: 20Gi}}\nnodeGroups:\n"

// newWorld creates a world with the node groups of a config, the offers, and one full machine. CA has the shipped
// flags, which the functions in change modify.
func newWorld(t *testing.T, nodeGroups string, offers []market.Offer, change ...func(*caconfig.AutoscalingOptions)) *world {
	w := &world{t: t, ctx: t.Context(), pace: 10 * time.Second, kube: fake.NewClientset(), offers: offers,
		holds: map[string]hold{}, failing: map[string]*fleet.Failure{}, hanging: map[string]bool{}, dead: map[string]bool{},
		standing: map[string]fleet.Standing{}}
	now := time.Now()
	w.time.Store(&now)
	w.groups = &groups{now: w.now, by: map[string]*fleet.Ledger{}}
	w.react()
	w.machines(1)
	w.publish()
	w.options = shipped
	for _, c := range change {
		c(&w.options)
	}
	w.options.CloudProviderName, w.options.NodeDeleteDelayAfterTaint = cloudprovider.ExternalGrpcProviderName, 0
	w.options.CloudConfig = w.serve(nodeGroups)
	w.start()
	t.Cleanup(func() {
		for _, c := range w.proxy.Calls(ca.Call.Failed) {
			require.True(t, w.fails, "a call of CA failed: %s", c)
		}
	})
	return w
}

// asByDefault sets CA's default limits for unready nodes, and its default backoff, instead of the shipped values.
func asByDefault(o *caconfig.AutoscalingOptions) {
	o.OkTotalUnreadyCount = 3
	o.InitialNodeGroupBackoffDuration, o.MaxNodeGroupBackoffDuration = 5*time.Minute, 30*time.Minute
}

// serve runs the gRPC server behind a proxy and returns the cloud config for CA.
func (w *world) serve(nodeGroups string) (cloudConfig string) {
	over := w.secure()
	w.address = w.listen(w.parse(nodeGroups), "127.0.0.1:0")
	w.options.GRPCExpanderURL = w.address
	var err error
	w.proxy, err = ca.NewProxy([]string{w.address}, filepath.Join(w.t.TempDir(), "calls.jsonl"), over)
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		require.NoError(w.t, w.proxy.Close())
		w.stop()
	})
	cloudConfig = filepath.Join(w.t.TempDir(), "cloud-config.yaml")
	require.NoError(w.t, os.WriteFile(cloudConfig, []byte("address: "+w.proxy.Address+"\n"), 0o600))
	return cloudConfig
}

// secure makes the gRPC server serve the expander over mutual TLS when CA uses the expander. It returns the proxy's
// credentials for this connection.
func (w *world) secure() (over ca.Transport) {
	w.serving.StopGrace = time.Millisecond
	if !strings.Contains(w.options.ExpanderNames, expander.GRPCExpanderName) {
		return over
	}
	dir, authority := w.t.TempDir(), testkit.NewAuthority(w.t)
	files := grpcserver.TLSFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
		ClientCA: filepath.Join(dir, "ca.crt"), Anonymous: true}
	authority.Issue(w.t).Write(w.t, files.Cert, files.Key)
	require.NoError(w.t, os.WriteFile(files.ClientCA, authority.PEM(), 0o600))
	var err error
	w.serving.Expander = true
	w.serving.Credentials, err = grpcserver.TLS(files, nil, slog.New(slog.DiscardHandler))
	require.NoError(w.t, err)
	w.options.GRPCExpanderCert = files.ClientCA
	over.Client = credentials.NewTLS(&tls.Config{RootCAs: authority.Pool(), ServerName: "localhost",
		Certificates: []tls.Certificate{authority.Issue(w.t).TLS()}})
	return over
}

// source provides the config of a world. A test can change the config while the server runs.
type source struct{ *world }

// Changed implements derive.Source.
func (s source) Changed() (cfg config.Config, changed bool, err error) {
	if next := s.next.Swap(nil); next != nil {
		return *next, true, nil
	}
	return cfg, false, nil
}

// Hash implements derive.Source.
func (source) Hash() string { return "" }

// listen starts a gRPC server. w.stop stops it.
func (w *world) listen(settings config.Config, address string) string {
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	derived := &derive.Groups{Market: w.current, Log: log, Now: w.now}
	o := grpcserver.Options{Groups: w.groups, Limits: settings.Limits, Market: w.current, Derived: derived, Logger: log}
	o.Specs, o.Reload = derived.Follow(settings, source{w})
	s, err := grpcserver.New(o)
	require.NoError(w.t, err)
	require.NoError(w.t, s.Start(w.ctx))
	l, err := net.Listen("tcp", address)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- grpcserver.Serve(ctx, l, s, w.serving) }()
	w.stop = func() {
		cancel()
		require.NoError(w.t, <-served)
	}
	return l.Addr().String()
}

func (w *world) parse(nodeGroups string) config.Config {
	w.t.Helper()
	cfg, err := config.Parse([]byte(shapes + nodeGroups))
	require.NoError(w.t, err)
	return cfg
}

// edit replaces the config.
func (w *world) edit(nodeGroups string) {
	settings := w.parse(nodeGroups)
	w.next.Store(&settings)
}

// start starts CA. When CA ran before, the new CA has no memory of the earlier run.
func (w *world) start() {
	w.watching.Clear()
	var err error
	w.ca, w.informer, err = core.New(w.ctx, w.options, w.kube, debuggingsnapshot.NewDebuggingSnapshotter(false),
		w.requests)
	require.NoError(w.t, err)
	testkit.Until(w.t, patience, "CA watches", func() error {
		for _, kind := range []string{"nodes", "pods"} {
			if _, watching := w.watching.Load(kind); !watching {
				return fmt.Errorf("%s are not watched", kind)
			}
		}
		return nil
	})
	require.NoError(w.t, w.ca.Start())
}

// react records when a watch of the fake API server has begun, because the fake API server loses earlier events. It
// also makes the API server evict pods.
func (w *world) react() {
	w.kube.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		begun, err := w.kube.Tracker().Watch(a.GetResource(), a.GetNamespace())
		w.watching.Store(a.GetResource().Resource, true)
		return true, begun, err
	})
	w.kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		name := a.(clienttesting.CreateActionImpl).Name
		return true, nil, w.kube.Tracker().Delete(a.GetResource(), a.GetNamespace(), name)
	})
}

// machines adds n full machines (nodes of the cluster itself).
func (w *world) machines(n int) {
	for range n {
		name := fmt.Sprintf("machine-%d", len(w.listNodes()))
		w.addNode(machine(name, "1", w.now().Add(-2*time.Hour)))
		p := newPod("full-"+name, "1", w.now())
		p.Spec.NodeName, p.Status.Phase = name, corev1.PodRunning
		w.addPod(p)
	}
}

func (w *world) now() time.Time { return *w.time.Load() }

// pass advances the time by d. With 0, it sets the time to the wall clock's time.
func (w *world) pass(d time.Duration) {
	now := w.now().Add(d)
	if d == 0 {
		now = time.Now()
	}
	w.time.Store(&now)
}

// current returns the market as the server reads it.
func (w *world) current() (market.Market, bool) { return *w.published.Load(), true }

func (w *world) publish() {
	m := w.market()
	w.published.Store(&m)
}

// offer returns an offer with capacity for n nodes of the shape.
func offer(provider, at string, nodes int, price float64) market.Offer {
	room := corev1.ResourceList{}
	for name, each := range map[corev1.ResourceName]string{"cpu": "2", "memory": "4Gi", "pods": "110",
		"ephemeral-storage": "20Gi"} {
		q := resource.MustParse(each)
		q.Mul(int64(nodes))
		room[name] = q
	}
	return market.Offer{Name: provider, Provider: provider, Lendable: room, Price: price,
		Labels: map[string]string{region: at}}
}

func offers(o ...market.Offer) []market.Offer { return o }

// loops runs n loops of CA. Before each loop it advances the time by w.pace, and after each loop it calls work. It
// returns CA's requests: "burst +2", "burst -1", "burst releases 1", and refused requests with their code.
func (w *world) loops(n int) (asked []string) {
	w.t.Helper()
	for range n {
		w.pass(w.pace)
		w.sync()
		if err := w.ca.RunOnce(w.now()); err != nil && !w.fails {
			w.t.Logf("RunOnce: %v", err)
		}
		w.settle()
		asked = append(asked, w.mutations()...)
		w.work()
	}
	return asked
}

// sync waits until CA's informers have received the state of the API server.
func (w *world) sync() {
	w.t.Helper()
	testkit.Until(w.t, patience, "CA's informers", func() error {
		nodes, err := w.informer.Core().V1().Nodes().Lister().List(labels.Everything())
		require.NoError(w.t, err)
		pods, err := w.informer.Core().V1().Pods().Lister().List(labels.Everything())
		require.NoError(w.t, err)
		if !same(nodes, w.listNodes()) || !same(pods, w.listPods()) {
			return fmt.Errorf("%d nodes and %d pods are not those of the API server", len(nodes), len(pods))
		}
		return nil
	})
}

func same[T interface{ GetName() string }](a, b []T) bool {
	byName := func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) }
	slices.SortFunc(a, byName)
	slices.SortFunc(b, byName)
	return equality.Semantic.DeepEqual(a, b)
}

// settle waits until CA has released the nodes that it has tainted, because CA deletes nodes in the background.
func (w *world) settle() {
	w.t.Helper()
	testkit.Until(w.t, patience, "deletions", func() error {
		for _, n := range w.listNodes() {
			if e := w.instance(n.Spec.ProviderID); isLeaving(n) && e != nil && !e.Leaving {
				return fmt.Errorf("%s is tainted and not released", n.Name)
			}
		}
		if n := w.proxy.UnderWay(); n > 0 { // the effects of a call are visible before the proxy records it
			return fmt.Errorf("%d calls are under way", n)
		}
		return nil
	})
}

// instance returns a copy of the entry with that id, or nil.
func (w *world) instance(id string) *fleet.Entry {
	w.groups.mu.Lock()
	defer w.groups.mu.Unlock()
	for _, l := range w.groups.by {
		for _, e := range l.Entries {
			if e.AttemptRef().InstanceID() == id {
				found := *e
				return &found
			}
		}
	}
	return nil
}

// kill makes a provider silent: its Nodes no longer report.
func (w *world) kill(provider string) {
	w.dead[provider] = true
	for _, n := range w.listNodes() {
		if n.Labels[cluster] == provider {
			w.unready(n)
		}
	}
	w.groups.mu.Lock()
	defer w.groups.mu.Unlock()
	for _, l := range w.groups.by {
		for _, e := range l.Entries {
			if e.Provider() == provider {
				l.Step(fleet.GroupInput{Facts: []fleet.Fact{{Instance: e.Name, Attempt: e.Attempt, Kind: fleet.NotReady}}}, w.now())
			}
		}
	}
}
