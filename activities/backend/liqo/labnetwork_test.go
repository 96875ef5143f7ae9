package liqo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// netLab is a lab that runs gateways: `make e2e SUITE=network`.
type netLab struct {
	*lab
	t *testing.T
	b *liqo.Backend
}

func theNetLab(t *testing.T) *netLab {
	t.Helper()
	if os.Getenv("LAB_GATEWAYS") == "" {
		t.Skip("needs real Liqo with gateways: make e2e SUITE=network")
	}
	l := theLab(t)
	return &netLab{lab: l, t: t, b: l.backend(t)}
}

// offer returns a provider with a network of mode gateway.
func (l *netLab) offer(n int, options string) fleet.Provider {
	p := l.provider(n)
	p.Network = &fleet.Network{Mode: fleet.NetworkGateway, Options: json.RawMessage(options)}
	return p
}

// establish runs Establish in passes, as activities do, and prints its duration.
func (l *netLab) establish(t *testing.T, p fleet.Provider) {
	t.Helper()
	began := time.Now()
	all := backend.WithStartTime(within(t, 3*time.Minute), began)
	for {
		ctx, cancel := context.WithTimeout(all, 4*time.Second)
		err := l.b.Establish(ctx, p, nil)
		cancel()
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, all.Err(), "%v", err)
	}
	fmt.Printf("STEP %s/establish %.1f\n", t.Name(), time.Since(began).Seconds())
}

// join makes a Node. With a network, the Node's condition NetworkUnavailable must be False; with the network mode none,
// the Node must not have this condition.
func (l *netLab) join(t *testing.T, a fleet.Attempt) {
	t.Helper()
	began := time.Now()
	_, err := l.b.Join(within(t, 3*time.Minute), nodeSpec(a), nil)
	require.NoError(t, err)
	fmt.Printf("STEP %s/join %.1f\n", t.Name(), time.Since(began).Seconds())
	node, err := l.node(t.Context(), a.ObjectName())
	require.NoError(t, err)
	var want, said []corev1.ConditionStatus
	if a.Provider.Network.Mode != fleet.NetworkNone {
		want = append(want, corev1.ConditionFalse)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeNetworkUnavailable {
			said = append(said, c.Status)
		}
	}
	require.Equal(t, want, said, "%s of the Node", corev1.NodeNetworkUnavailable)
}

// remove removes a peering, and requires that no object of a network is left on the consumer or the provider.
func (l *netLab) remove(t *testing.T, p fleet.Provider) {
	t.Helper()
	began := time.Now()
	require.NoError(t, l.b.RemovePeering(within(t, 2*time.Minute), p, nil))
	fmt.Printf("STEP %s/remove %.1f\n", t.Name(), time.Since(began).Seconds())
	l.requireNothing(t)
	l.requireNoNetwork(t, p)
}

// networkKinds returns all kinds of a network's objects, including the kinds that Liqo makes.
func networkKinds() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, name := range []string{"configurations", "gatewayservers", "gatewayclients", "publickeies", "connections",
		"wggatewayservers", "wggatewayclients"} {
		all = append(all, networking(name))
	}
	return append(all, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		schema.GroupVersionResource{Version: "v1", Resource: "services"})
}

// network lists the objects of the networks between the consumer and a provider.
func (l *netLab) network(ctx context.Context, p fleet.Provider) (found []*unstructured.Unstructured, err error) {
	for cluster, namespace := range map[string]string{consumer: "liqo-tenant-" + p.ID, p.ID: "liqo-tenant-" + consumer} {
		for _, kind := range networkKinds() {
			list, err := l.clusters[cluster].any.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				if kind.Group == "networking.liqo.io" || strings.HasPrefix(list.Items[i].GetName(), "gw-") {
					found = append(found, &list.Items[i])
				}
			}
		}
	}
	return found, nil
}

func (l *netLab) requireNoNetwork(t *testing.T, p fleet.Provider) {
	t.Helper()
	left := 0
	err := poll(within(t, time.Minute), func(ctx context.Context) (bool, error) {
		found, err := l.network(ctx, p)
		left = len(found)
		return err == nil && left == 0, err
	})
	require.NoError(t, err, "%d objects of the network are left", left)
}

// requireConnected fails unless the consumer and the provider each have exactly one Connection, and both are
// Connected.
func (l *netLab) requireConnected(t *testing.T, p fleet.Provider) {
	t.Helper()
	found, err := l.network(t.Context(), p)
	require.NoError(t, err)
	n := 0
	for _, o := range found {
		if o.GetKind() == "Connection" {
			value, _, _ := unstructured.NestedString(o.Object, "status", "value")
			require.Equal(t, "Connected", value)
			n++
		}
	}
	require.Equal(t, 2, n)
}

// liqoctlNetwork runs liqoctl network on the consumer, towards a provider.
func (l *netLab) liqoctlNetwork(ctx context.Context, p fleet.Provider, args ...string) error {
	args = append(append([]string{"network"}, args...), "--kubeconfig", l.clusters[consumer].kubeconfig,
		"--remote-kubeconfig", l.clusters[p.ID].kubeconfig, "--skip-confirm")
	out, err := exec.CommandContext(ctx, filepath.Join(l.bin, "liqo", "liqoctl"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("liqoctl %v: %w\n%s", args, err, out)
	}
	return nil
}

// withhold keeps load balancers without an address until the returned function is called.
func (l *netLab) withhold(t *testing.T) (provide func()) {
	path := filepath.Join(l.root, "network", "no-loadbalancer-address")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	t.Cleanup(func() { _ = os.Remove(path) })
	return func() { require.NoError(t, os.Remove(path)) }
}
