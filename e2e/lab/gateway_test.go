package lab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// TestGateways connects a peering with a network, cuts and restores the wire, kills the gateways and waits for their
// restart, and removes the peering. The test then connects only the network, without a peering, with the server on a
// NodePort of the consumer.
func TestGateways(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes and Liqo")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	before := machine(t)
	l := lab.ForTest(ctx, t, lab.Options{Providers: 1, Gateways: true})
	provider := l.Providers[0]
	consumer := client(t, l, lab.Consumer)

	began := time.Now()
	liqoctl(ctx, t, l, "peer", "--remote-kubeconfig", l.Kubeconfig(provider), "--cpu", "2", "--memory", "4Gi")
	connected(ctx, t, l, provider)
	require.Eventually(t, func() bool { return ready(ctx, consumer, provider) }, time.Minute, 100*time.Millisecond)
	step(l, "peer-to-ready", began)
	spaces := gatewaySpaces(t, l, provider)

	require.ErrorContains(t, l.Cut(lab.Consumer, "provider7"), `no cluster "provider7" in this lab`)
	began = time.Now()
	require.NoError(t, l.Cut(provider, lab.Consumer))
	broken(ctx, t, l, provider)
	step(l, "cut-to-error", began)
	require.Eventually(t, func() bool { return !ready(ctx, consumer, provider) }, time.Minute, 100*time.Millisecond)
	step(l, "cut-to-not-ready", began)
	began = time.Now()
	require.NoError(t, l.Restore(lab.Consumer, provider))
	connected(ctx, t, l, provider)
	require.Eventually(t, func() bool { return ready(ctx, consumer, provider) }, time.Minute, 100*time.Millisecond)
	step(l, "restored-to-ready", began)

	for _, side := range [][2]string{{lab.Consumer, provider}, {provider, lab.Consumer}} {
		killed(ctx, t, l, side[0], side[1])
	}
	require.Equal(t, spaces, gatewaySpaces(t, l, provider), "a container comes back into its pod's network")

	liqoctl(ctx, t, l, "unpeer", "--remote-kubeconfig", l.Kubeconfig(provider))
	require.Eventually(t, func() bool { return members(t, spaces) == 0 }, 2*time.Minute, 100*time.Millisecond,
		"no process is left in the pods' networks")

	swapped(ctx, t, l, "network", "connect", "--gw-server-service-type", "NodePort", "--wait")
	connected(ctx, t, l, provider)
	spaces = gatewaySpaces(t, l, provider)
	require.NoError(t, l.Down())
	require.Zero(t, members(t, spaces))
	require.Equal(t, before, machine(t))
}

// killed kills the gateway of one cluster. The lab starts the gateway's processes again, and they report the
// connection again.
func killed(ctx context.Context, t *testing.T, l *lab.Lab, cluster, remote string) {
	t.Helper()
	process := cluster + "-" + lab.WireGuard(remote)
	first, err := l.Pid(process)
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, l.KillGateway(cluster, remote))
	require.Eventually(t, func() bool {
		again, err := l.Pid(process)
		return err == nil && again != first
	}, 2*time.Minute, 50*time.Millisecond)
	back := time.Now()
	step(l, "killed-to-started", began)
	// The status of a dead gateway does not change. Only a running gateway advances the time of the measured latency, in
	// whole seconds.
	require.Eventually(t, func() bool {
		return latencyAt(ctx, t, l, cluster, remote).After(back) && latencyAt(ctx, t, l, remote, cluster).After(back)
	}, time.Minute, 200*time.Millisecond)
	connected(ctx, t, l, l.Providers[0])
	step(l, "killed-to-both-sides-connected", began)
	pods, err := client(t, l, cluster).CoreV1().Pods("liqo-tenant-"+remote).List(ctx, metav1.ListOptions{
		LabelSelector: "networking.liqo.io/component=gateway"})
	require.NoError(t, err)
	require.Len(t, pods.Items, 1)
	restarts := map[string]int32{}
	for _, c := range pods.Items[0].Status.ContainerStatuses {
		restarts[c.Name] = c.RestartCount
	}
	require.Equal(t, map[string]int32{"gateway": 1, "wireguard": 1, "geneve": 0}, restarts)
}

func connected(ctx context.Context, t *testing.T, l *lab.Lab, provider string) {
	t.Helper()
	both(ctx, t, l, provider, func(value string) bool { return value == lab.Connected })
}

func broken(ctx context.Context, t *testing.T, l *lab.Lab, provider string) {
	t.Helper()
	both(ctx, t, l, provider, func(value string) bool { return value == lab.ConnectionError })
}

func both(ctx context.Context, t *testing.T, l *lab.Lab, provider string, is func(string) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		here, err := l.Connection(ctx, lab.Consumer, provider)
		require.NoError(t, err)
		there, err := l.Connection(ctx, provider, lab.Consumer)
		require.NoError(t, err)
		return is(here) && is(there)
	}, time.Minute, 100*time.Millisecond)
}

// latencyAt returns the time at which a cluster's gateway last measured the latency of its tunnel.
func latencyAt(ctx context.Context, t *testing.T, l *lab.Lab, cluster, remote string) time.Time {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig(cluster))
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	list, err := objects.Resource(schema.GroupVersionResource{Group: "networking.liqo.io", Version: "v1beta1",
		Resource: "connections"}).Namespace("liqo-tenant-"+remote).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	text, _, _ := unstructured.NestedString(list.Items[0].Object, "status", "latency", "timestamp")
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// swapped runs liqoctl as a user of the provider. For this user, the consumer is the remote cluster.
func swapped(ctx context.Context, t *testing.T, l *lab.Lab, args ...string) {
	t.Helper()
	liqoctlAt(ctx, t, l, l.Providers[0], append(args, "--remote-kubeconfig", l.Kubeconfig(lab.Consumer))...)
}

// gatewaySpaces returns the network namespaces of the gateways of a peering. There must be two, both different from
// ours.
func gatewaySpaces(t *testing.T, l *lab.Lab, provider string) []string {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	var out []string
	for _, process := range []string{
		lab.Consumer + "-" + lab.Gateway(provider), lab.Consumer + "-" + lab.WireGuard(provider),
		provider + "-" + lab.Gateway(lab.Consumer), provider + "-" + lab.WireGuard(lab.Consumer),
	} {
		pid, err := l.Pid(process)
		require.NoError(t, err)
		space, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", "net"))
		require.NoError(t, err, process)
		require.NotEqual(t, own, space)
		out = append(out, space)
	}
	require.Equal(t, []string{out[0], out[0], out[2], out[2]}, out, "a pod's containers share one")
	require.NotEqual(t, out[0], out[2])
	return out
}

// members returns the number of processes in any of these network namespaces.
func members(t *testing.T, spaces []string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/ns/net")
	require.NoError(t, err)
	n := 0
	for _, path := range all {
		if space, err := os.Readlink(path); err == nil && slices.Contains(spaces, space) {
			n++
		}
	}
	return n
}

// machine returns the network interfaces and the mounts of this machine. Tests compare them before and after a lab,
// to find remains of the lab.
func machine(t *testing.T) (out []string) {
	t.Helper()
	links, err := os.ReadDir("/sys/class/net")
	require.NoError(t, err)
	for _, link := range links {
		out = append(out, link.Name())
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	return append(out, string(mounts))
}

func step(l *lab.Lab, name string, began time.Time) {
	fmt.Printf("STEP lab/liqo-%s/%s %.1f\n", l.LiqoVersion, name, time.Since(began).Seconds())
}

// balanced checks that a Service gets the address that it requests, or a new one, unless the lab withholds addresses.
func balanced(ctx context.Context, t *testing.T, l *lab.Lab, c kubernetes.Interface) {
	t.Helper()
	make := func(name, ip string) {
		_, err := c.CoreV1().Services("default").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: ip,
				Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	address := func(name string) string {
		s, err := c.CoreV1().Services("default").Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			return ""
		}
		return s.Status.LoadBalancer.Ingress[0].IP
	}
	require.NoError(t, l.WithholdAddresses())
	make("first", "")
	require.Never(t, func() bool { return address("first") != "" }, time.Second, 100*time.Millisecond)
	require.NoError(t, l.ProvideAddresses())
	make("second", "")
	make("third", "203.0.113.7")
	require.Eventually(t, func() bool {
		return address("first") != "" && address("second") != "" && address("third") != ""
	}, 2*time.Minute, 100*time.Millisecond)
	require.NotEqual(t, address("first"), address("second"))
	require.Equal(t, "203.0.113.7", address("third"))
}
