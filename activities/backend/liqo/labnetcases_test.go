package liqo_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A peering connects with each network setting that users may write, and its removal leaves no objects. The first case
// is an offer without a setting.
func TestLabNetworkMade(t *testing.T) {
	l := theNetLab(t)
	for n, c := range []struct{ name, options string }{
		{"Default", ""},
		{"NodePortAtConsumer", `{"serverLocation":"consumer","serviceType":"NodePort"}`},
		{"ClusterIPAtProvider", `{"serviceType":"ClusterIP","servicePort":51841,"mtu":1280}`},
		{"LoadBalancerAtConsumer", `{"serverLocation":"consumer"}`},
		{"FixedNodePort", `{"serviceType":"NodePort","nodePort":31841}`},
		{"ClientAddress", `{"loadBalancerIP":"203.0.113.7","clientAddress":"203.0.113.7","clientPort":51840}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := l.offer(1+n%2, c.options)
			l.establish(t, p)
			l.requireConnected(t, p)
			if n < 2 {
				a := attempt(300+n, p)
				l.join(t, a)
				require.ErrorIs(t, l.b.RemovePeering(within(t, time.Minute), p, nil), backend.ErrInUse)
				l.requireConnected(t, p)
				require.NoError(t, l.b.Return(within(t, time.Minute), a, nil))
			}
			l.remove(t, p)
		})
	}
}

// Establish reports an unreachable endpoint as a missing connection. It leaves no objects and harms no other provider.
func TestLabNetworkUnreachable(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, `{"clientAddress":"203.0.113.9"}`)
	err := l.b.Establish(within(t, 20*time.Second), p, nil)
	requireStuck(t, err, backend.StageConnection)
	require.ErrorContains(t, err, "the Connection on this cluster is ")
	other := l.offer(2, "")
	l.establish(t, other)
	l.removeOther(t, p)
	l.requireConnected(t, other)
	l.remove(t, other)
}

// removeOther removes a peering as remove does. It checks only this provider for remaining objects.
func (l *netLab) removeOther(t *testing.T, p fleet.Provider) {
	t.Helper()
	require.NoError(t, l.b.RemovePeering(within(t, 2*time.Minute), p, nil))
	l.requireNoNetwork(t, p)
}

// The gateway has no address, because a load balancer is missing. The unfinished network can be removed. As soon as
// an address exists, the network can be completed.
func TestLabNetworkWithoutAddress(t *testing.T) {
	l := theNetLab(t)
	provide := l.withhold(t)
	p := l.offer(1, "")
	err := l.b.Establish(within(t, 15*time.Second), p, nil)
	requireStuck(t, err, backend.StageGatewayServer)
	require.ErrorContains(t, err, "has no address yet: type LoadBalancer")
	l.remove(t, p)
	requireStuck(t, l.b.Establish(within(t, 15*time.Second), p, nil), backend.StageGatewayServer)
	provide()
	l.establish(t, p)
	l.requireConnected(t, p)
	l.remove(t, p)
}

// The test ends Establish at each stage of the network. Another process then completes or removes the network.
func TestLabNetworkCut(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(2, `{"serviceType":"NodePort"}`)
	for n, cut := range []backend.Stage{backend.StageNetworkConfig, backend.StageGatewayServer,
		backend.StageGatewayClient, backend.StageGatewayKeys, backend.StageConnection} {
		t.Run(string(cut), func(t *testing.T) {
			ctx, cancel := context.WithCancel(within(t, 2*time.Minute))
			defer cancel()
			seen := 0
			err := l.backend(t).Establish(ctx, p, func(stage backend.Stage, _ string) {
				if stage == cut {
					if seen++; seen == 1+n%2 { // end Establish before the stage, or in it
						cancel()
					}
				}
			})
			t.Log(err)
			if n%2 == 0 {
				l.establish(t, p)
				l.requireConnected(t, p)
			}
			l.remove(t, p)
		})
	}
}

// Establish uses a connected network that liqoctl has made, and does not change it. It refuses an unfinished network
// of liqoctl.
func TestLabNetworkForeign(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, "")
	t.Cleanup(func() { _ = l.liqoctlNetwork(context.Background(), p, "reset") })
	require.NoError(t, l.liqoctlNetwork(within(t, 2*time.Minute), p, "connect", "--gw-server-service-type", "NodePort",
		"--wait"))
	for _, mode := range []fleet.NetworkMode{fleet.NetworkGateway, fleet.NetworkExisting} {
		p.Network.Mode = mode
		l.establish(t, p)
		a := attempt(320, p)
		l.join(t, a)
		require.NoError(t, l.b.Return(within(t, time.Minute), a, nil))
		require.NoError(t, l.b.RemovePeering(within(t, time.Minute), p, nil))
		l.requireNothing(t)
		l.requireConnected(t, p)
	}
	require.NoError(t, l.liqoctlNetwork(within(t, time.Minute), p, "reset"))
	l.requireNoNetwork(t, p)

	there := l.clusters[p.ID].any.Resource(networking("configurations")).Namespace("liqo-tenant-" + consumer)
	_, err := there.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.liqo.io/v1beta1", "kind": "Configuration",
		"metadata": map[string]any{"name": consumer, "labels": map[string]any{"liqo.io/remote-cluster-id": consumer}},
		"spec": map[string]any{"remote": map[string]any{"cidr": map[string]any{"pod": []any{"10.100.0.0/16"},
			"external": []any{"10.70.0.0/16"}}}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	err = l.b.Establish(within(t, time.Minute), p, nil)
	require.ErrorIs(t, err, backend.ErrConflict)
	require.ErrorContains(t, err, "ForeignNetworkNotConnected")
	require.NoError(t, l.b.RemovePeering(within(t, time.Minute), p, nil))
	_, err = there.Get(t.Context(), consumer, metav1.GetOptions{})
	require.NoError(t, err, "it is left as it is")
	require.NoError(t, there.Delete(t.Context(), consumer, metav1.DeleteOptions{}))
	for cluster, namespace := range map[string]string{consumer: "liqo-tenant-" + p.ID, p.ID: "liqo-tenant-" + consumer} {
		require.NoError(t, l.clusters[cluster].removeNamespace(t.Context(), namespace), "which liqoctl has made")
	}
}

// With the network mode none, Establish makes no network objects, and the Node is still Ready. A pod on this Node has
// no address on the consumer, so it never becomes an endpoint of a Service.
func TestLabNetworkNone(t *testing.T) {
	l := theNetLab(t)
	p := l.provider(1)
	p.Network.Options = l.kubeletOptions(t)
	l.establish(t, p)
	found, err := l.network(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, found)
	a := attempt(330, p)
	l.join(t, a)
	l.offload(t)
	require.NoError(t, l.putPod(within(t, time.Minute), a.ObjectName(), backendtest.Pod{Name: "web"}))
	there, err := l.clusters[p.ID].kube.CoreV1().Pods(podNamespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, there.Status.PodIP)
	here, err := l.clusters[consumer].kube.CoreV1().Pods(podNamespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, here.Status.PodIPs)
	l.requireNoEndpoint(t, "web")
	l.requireOptions(t, a)
	require.NoError(t, l.b.Return(within(t, time.Minute), a, nil))
	l.remove(t, p)
}

// A node with a network also runs with the VkOptionsTemplate that its offer names.
func TestLabNetworkVirtualKubelet(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, string(l.kubeletOptions(t)))
	l.establish(t, p)
	a := attempt(340, p)
	l.join(t, a)
	l.requireOptions(t, a)
	require.NoError(t, l.b.Return(within(t, time.Minute), a, nil))
	l.remove(t, p)
}

// kubeletOptions copies Liqo's own VkOptionsTemplate for the test, with an annotation for Nodes. It returns the network
// options that name the copy.
func (l *netLab) kubeletOptions(t *testing.T) []byte {
	t.Helper()
	templates := l.clusters[consumer].any.Resource(offloading("vkoptionstemplates")).Namespace("liqo")
	own, err := templates.Get(t.Context(), "virtual-kubelet-default", metav1.GetOptions{})
	require.NoError(t, err)
	spec := own.Object["spec"].(map[string]any)
	spec["nodeExtraAnnotations"] = map[string]any{"example.com/options": "named"}
	_, err = templates.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": own.GetAPIVersion(), "kind": own.GetKind(), "metadata": map[string]any{"name": "named"}, "spec": spec,
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, templates.Delete(context.Background(), "named", metav1.DeleteOptions{}))
	})
	return []byte(`{"virtualKubelet":"named"}`)
}

func (l *netLab) requireOptions(t *testing.T, a fleet.Attempt) {
	t.Helper()
	node, err := l.clusters[consumer].kube.CoreV1().Nodes().Get(t.Context(), a.ObjectName(), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "named", node.Annotations["example.com/options"])
}

// TestLabNetworkTaken uses a provider whose addresses, as Liqo reports them, include the address of a node of the
// consumer. Liqo would route that node's address to the provider, so Establish makes no gateway. After the node is
// gone, Establish accepts the provider.
func TestLabNetworkTaken(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, "")
	l.establish(t, p)
	c := l.clusters[consumer]
	namespace := "liqo-tenant-" + p.ID
	made, err := c.any.Resource(networking("configurations")).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, made.Items, 1)
	pods, _, err := unstructured.NestedStringSlice(made.Items[0].Object, "status", "remote", "cidr", "pod")
	require.NoError(t, err)
	taken, err := netip.ParsePrefix(pods[0])
	require.NoError(t, err)
	l.remove(t, p)

	node, err := c.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "taken"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	leave := func(ctx context.Context) {
		require.NoError(t, ignoreNotFound(c.kube.CoreV1().Nodes().Delete(ctx, "taken", metav1.DeleteOptions{})))
	}
	t.Cleanup(func() { leave(context.WithoutCancel(t.Context())) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP,
		Address: taken.Addr().Next().Next().String()}}
	_, err = c.kube.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	err = l.b.Establish(within(t, time.Minute), p, nil)
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.ErrorContains(t, err, "AddressesOverlap: Liqo would route "+taken.String()+" to the provider on every node")
	require.ErrorContains(t, err, "an address of node taken")
	for _, kind := range []string{"gatewayclients", "gatewayservers"} {
		found, err := c.any.Resource(networking(kind)).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, found.Items, kind)
	}
	leave(t.Context())
	l.establish(t, p)
	l.requireConnected(t, p)
	l.remove(t, p)
}
