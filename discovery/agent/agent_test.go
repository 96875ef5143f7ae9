package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const patience = time.Minute

var quiet = slog.New(slog.DiscardHandler)

// cluster is a fake provider cluster.
type cluster struct {
	kube    *fake.Clientset
	objects *dynamicfake.FakeDynamicClient
	watches chan string // receives the name of each watched resource when its watch has begun
}

func newCluster(objects ...runtime.Object) *cluster {
	c := &cluster{kube: fake.NewClientset(objects...), watches: make(chan string, 100)}
	c.objects = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{sliceResource: "ResourceSliceList", tenantResource: "TenantList"})
	c.versionedRecord()
	for _, f := range []*clienttesting.Fake{&c.kube.Fake, &c.objects.Fake} {
		tracker := c.kube.Tracker()
		if f == &c.objects.Fake {
			tracker = c.objects.Tracker()
		}
		f.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
			w, err := tracker.Watch(action.GetResource(), action.GetNamespace())
			c.watches <- action.GetResource().Resource
			return true, w, err
		})
	}
	return c
}

// sink keeps the offers that the agent writes.
type sink struct {
	mu     sync.Mutex
	offers map[string]api.Posted
	puts   int
	err    error
}

func (s *sink) Restart() {}

func (s *sink) Put(_ context.Context, offer api.Posted, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.offers[offer.Name] = offer
	s.puts++
	return nil
}

func (s *sink) Withdraw(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.offers, name)
	return s.err
}

func (s *sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// cpu returns a check that the offer has this amount of CPU. When want is "", the offer must not exist.
func (s *sink) cpu(name, want string) func() error {
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		offer, ok := s.offers[name]
		if got := offer.Lendable.Cpu().String(); ok != (want != "") || ok && got != want {
			return fmt.Errorf("offered: %v, with CPU %s", ok, got)
		}
		return nil
	}
}

func configFile(t *testing.T, content string) (*reload.Files[Config], string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	files, err := OpenConfig(path)
	require.NoError(t, err)
	return files, path
}

// start runs an agent until the test ends or the function stop is called. It returns when all watches have begun,
// because a fake cluster loses the events between a list and its watch.
func (c *cluster) start(t *testing.T, config *reload.Files[Config], to Sink) (a *Agent, stop func()) {
	t.Helper()
	a, err := New(c.options(config, to))
	require.NoError(t, err)
	return a, c.run(t, a)
}

func (c *cluster) options(config *reload.Files[Config], to Sink) Options {
	return Options{Kube: c.kube, Objects: c.objects, Config: config, Sink: to, Namespace: "agents",
		Metrics: NewMetrics("test", prometheus.NewRegistry()), Log: quiet}
}

func (c *cluster) run(t *testing.T, a *Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	missing := map[string]bool{"nodes": true, "pods": true, "resourceslices": true,
		"tenants": true}
	for len(missing) > 0 {
		select {
		case resource := <-c.watches:
			delete(missing, resource)
		case <-time.After(patience):
			require.Fail(t, "not watched", "%v", missing)
		}
	}
	return stop
}

func liqoSlice(name, consumer, cpu string) *unstructured.Unstructured {
	conditions := []any{map[string]any{"type": "Resources", "status": "Accepted"}}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
		"spec": map[string]any{"class": "default", "consumerClusterID": consumer,
			"resources": map[string]any{"cpu": cpu}},
		"status": map[string]any{"resources": map[string]any{"cpu": cpu}, "conditions": conditions},
	}}
	o.SetName(name)
	o.SetNamespace("liqo-tenant-" + consumer)
	return o
}

// Changes in the cluster and in the config immediately change the offer. An agent that stops withdraws its offers.
func TestOfferFollowsTheCluster(t *testing.T) {
	c := newCluster(node("a", amounts("16", "64Gi", "pods", "110")))
	to := &sink{offers: map[string]api.Posted{}}
	config, path := configFile(t, document)
	a, stop := c.start(t, config, to)
	testkit.Until(t, patience, "offered", to.cpu("milan", "10"))
	require.NoError(t, a.Ready())
	require.NoError(t, a.Advertised())

	pods := c.kube.CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), pod("p", "a", amounts("7", "1Gi")), metav1.CreateOptions{})
	require.NoError(t, err)
	testkit.Until(t, patience, "a pod of others shrinks it", to.cpu("milan", "8"))

	c.tenant(t, "turin")
	slices := c.objects.Resource(sliceResource).Namespace("liqo-tenant-turin")
	_, err = slices.Create(t.Context(), liqoSlice("s", "turin", "3"), metav1.CreateOptions{})
	require.NoError(t, err)
	testkit.Until(t, patience, "a slice of another consumer", to.cpu("milan", "5"))
	require.NoError(t, slices.Delete(t.Context(), "s", metav1.DeleteOptions{}))
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	testkit.Until(t, patience, "both gone", to.cpu("milan", "10"))

	nodes := c.kube.CoreV1().Nodes()
	cordoned := node("a", amounts("16", "64Gi", "pods", "110"), func(n *corev1.Node) { n.Spec.Unschedulable = true })
	_, err = nodes.Update(t.Context(), cordoned, metav1.UpdateOptions{})
	require.NoError(t, err)
	testkit.Until(t, patience, "the node is cordoned", to.cpu("milan", "0"))

	renamed := []byte("provider: milan-1\noffers:\n- {consumer: munich, name: other, credentials: {secretRef: " +
		"{namespace: lend, name: milan}}}\n")
	require.NoError(t, os.WriteFile(path, renamed, 0o600))
	_, err = nodes.Update(t.Context(), node("a", amounts("9", "64Gi", "pods", "110")), metav1.UpdateOptions{})
	require.NoError(t, err)
	testkit.Until(t, patience, "the config has changed", to.cpu("other", "9"))
	testkit.Until(t, patience, "and the old offer is withdrawn", to.cpu("milan", ""))

	stop()
	require.Empty(t, to.offers)
}

// The agent retries a failed write to the server. Until a write succeeds, it reports the error.
func TestFailedWriteIsRetried(t *testing.T) {
	c := newCluster(node("a", amounts("4", "64Gi", "pods", "110")))
	to := &sink{offers: map[string]api.Posted{}, err: errors.New("away")}
	config, _ := configFile(t, document)
	a, _ := c.start(t, config, to)
	testkit.Until(t, patience, "it says so", func() error {
		if err := a.Advertised(); err == nil || err.Error() != "away" {
			return fmt.Errorf("said: %v", err)
		}
		return nil
	})
	to.fail(nil)
	testkit.Until(t, patience, "offered", to.cpu("milan", "3"))
	testkit.Until(t, patience, "all is well", a.Advertised)
}

// Only one of two agents works. When the working agent stops, the other agent takes over.
func TestOnlyOneOfTwoAgentsWorks(t *testing.T) {
	c := newCluster(node("a", amounts("4", "64Gi", "pods", "110")))
	config, _ := configFile(t, document)
	first, second := &sink{offers: map[string]api.Posted{}}, &sink{offers: map[string]api.Posted{}}
	_, stop := c.start(t, config, first)
	testkit.Until(t, patience, "the first offers", first.cpu("milan", "3"))
	c.start(t, config, second)
	require.False(t, first.cpu("milan", "3")() == nil && second.cpu("milan", "3")() == nil, "both work")
	stop()
	require.Empty(t, first.offers)
	testkit.Until(t, patience, "the second offers", second.cpu("milan", "3"))
}
