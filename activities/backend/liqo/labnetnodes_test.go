package liqo_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Ten nodes join on one peering. They share one pair of gateways.
func TestLabNetworkTen(t *testing.T) {
	l := theNetLab(t)
	if oneSlice() {
		t.Skip("Liqo 1.1 bears one node on a provider: TestLabOneSlice")
	}
	p := l.offer(1, `{"serviceType":"NodePort"}`)
	var attempts []fleet.Attempt
	for i := range 10 {
		attempts = append(attempts, attempt(360+i, p))
	}
	each := func(verb func(ctx context.Context, a fleet.Attempt) error) {
		var all errgroup.Group
		for _, a := range attempts {
			all.Go(func() error { return verb(within(t, 3*time.Minute), a) })
		}
		require.NoError(t, all.Wait())
	}
	each(func(ctx context.Context, a fleet.Attempt) error {
		if err := l.b.Establish(ctx, p, nil); err != nil {
			return err
		}
		_, err := l.b.Join(ctx, nodeSpec(a), nil)
		return err
	})
	found, err := l.network(t.Context(), p)
	require.NoError(t, err)
	count := map[string]int{}
	for _, o := range found {
		count[o.GetKind()]++
	}
	require.Equal(t, map[string]int{"Configuration": 2, "GatewayServer": 1, "GatewayClient": 1, "PublicKey": 2,
		"Connection": 2, "WgGatewayServer": 1, "WgGatewayClient": 1, "Deployment": 2, "Service": 1}, count)
	each(func(ctx context.Context, a fleet.Attempt) error { return l.b.Return(ctx, a, nil) })
	l.remove(t, p)
}

// A peering in the opposite direction uses our network. The network stays while that peering exists. When that
// peering is gone, our network is removed.
func TestLabNetworkTwoWay(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, `{"serviceType":"NodePort"}`)
	here, there := l.clusters[consumer], l.clusters[p.ID]
	l.establish(t, p)
	require.NoError(t, l.liqoctl(t.Context(), "authenticate", there, here))
	require.ErrorIs(t, l.b.RemovePeering(within(t, 30*time.Second), p, nil), backend.ErrInUse)
	l.requireConnected(t, p)
	require.NoError(t, l.unpeerByHand(t.Context(), there, here))
	require.NoError(t, poll(within(t, time.Minute), func(ctx context.Context) (bool, error) {
		tenants, err := here.any.Resource(authentication("tenants")).List(ctx, metav1.ListOptions{})
		return err == nil && len(tenants.Items) == 0, err
	}))
	l.removeOther(t, p)
	for c, namespace := range map[*cluster]string{here: "liqo-tenant-" + p.ID, there: "liqo-tenant-" + consumer} {
		require.NoError(t, c.removeNamespace(t.Context(), namespace), "where liqoctl has left its nonces")
	}
	l.requireNothing(t)
}

// All objects of a network are removed while a node uses it. Observe reports that the network is missing, and the
// next Establish makes it again.
func TestLabNetworkReset(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, `{"serviceType":"NodePort"}`)
	l.establish(t, p)
	a := attempt(380, p)
	l.join(t, a)
	require.NoError(t, l.liqoctlNetwork(within(t, 2*time.Minute), p, "reset"))
	l.requireNoNetwork(t, p)
	l.requireSeen(t, p, func(o backend.Observation) bool { return strings.Contains(o.Network, "was removed") })
	l.establish(t, p)
	l.requireConnected(t, p)
	l.requireWhole(t, p, a)
	require.NoError(t, l.b.Return(within(t, time.Minute), a, nil))
	l.remove(t, p)
}

// Our gateway is killed and started again, as Kubernetes would do. The network recovers without an Establish.
func TestLabNetworkKilled(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, `{"serviceType":"NodePort"}`)
	l.establish(t, p)
	a := attempt(381, p)
	l.join(t, a)
	for _, process := range []string{"-gateway", "-wireguard"} {
		process = consumer + "-gw-" + p.ID + process
		before, err := l.pid(process)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(before, syscall.SIGKILL))
		require.NoError(t, poll(within(t, time.Minute), func(context.Context) (bool, error) {
			now, err := l.pid(process)
			return err == nil && now != before && syscall.Kill(now, 0) == nil, nil
		}))
	}
	var first []string
	l.requireSeen(t, p, func(o backend.Observation) bool {
		if o.Network != "" || len(o.Heard) != 2 {
			return false
		}
		if first == nil {
			first = o.Heard
		}
		return o.Heard[0] != first[0] && o.Heard[1] != first[1] // a dead gateway's Connection stays Connected
	})
	l.requireReady(t, a, corev1.ConditionTrue)
	require.NoError(t, l.b.Return(within(t, time.Minute), a, nil))
	l.remove(t, p)
}

// requireNoEndpoint makes a Service that selects the pod, and requires that Kubernetes has found no address for it.
func (l *netLab) requireNoEndpoint(t *testing.T, pod string) {
	t.Helper()
	here := l.clusters[consumer].kube
	_, err := here.CoreV1().Services(podNamespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{podLabel: pod},
			Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	var slices *discoveryv1.EndpointSliceList
	require.NoError(t, poll(within(t, time.Minute), func(ctx context.Context) (bool, error) {
		slices, err = here.DiscoveryV1().EndpointSlices(podNamespace).List(ctx, metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=web"})
		return err == nil && len(slices.Items) > 0, err
	}))
	for i := range slices.Items {
		require.Empty(t, slices.Items[i].Endpoints)
	}
}
