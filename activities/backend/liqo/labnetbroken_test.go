package liqo_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A network breaks while a node uses it. Observe reports this, and the Node is no longer Ready. The network recovers
// when the connection is restored or the gateway runs again. If one of the network's objects was deleted, the next
// Establish repairs the network.
func TestLabNetworkBroken(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, `{"serviceType":"NodePort"}`)
	l.establish(t, p)
	a := attempt(350, p)
	l.join(t, a)

	cut := filepath.Join(l.root, "network", "cut-"+consumer+"-"+p.ID)
	require.NoError(t, os.MkdirAll(filepath.Dir(cut), 0o755))
	require.NoError(t, os.WriteFile(cut, nil, 0o600))
	t.Cleanup(func() { _ = os.Remove(cut) })
	l.requireBroken(t, p)
	l.requireReady(t, a, corev1.ConditionFalse)
	requireStuck(t, l.b.Establish(within(t, 10*time.Second), p, nil), backend.StageConnection)
	require.NoError(t, os.Remove(cut))
	l.requireWhole(t, p, a)

	// Our gateway stops, and the gateway of the other cluster reports this.
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		for _, process := range []string{"-gateway", "-wireguard"} {
			require.NoError(t, l.signal(consumer+"-gw-"+p.ID+process, signal))
		}
		if signal == syscall.SIGSTOP {
			l.requireBroken(t, p)
		}
	}
	l.requireWhole(t, p, a)

	require.NoError(t, l.clusters[p.ID].any.Resource(networking("gatewayservers")).Namespace("liqo-tenant-"+consumer).
		Delete(t.Context(), consumer, metav1.DeleteOptions{}))
	l.requireBroken(t, p)
	l.establish(t, p)
	l.requireWhole(t, p, a)

	require.NoError(t, l.b.Return(within(t, time.Minute), a, nil))
	l.remove(t, p)
}

// A person changes our objects on the consumer and on the provider. The next Establish corrects them.
func TestLabNetworkMended(t *testing.T) {
	l := theNetLab(t)
	for n, location := range []string{"provider", "consumer"} {
		options := `{"serverLocation":"` + location + `","serviceType":"NodePort"}`
		p := l.offer(1+n, options)
		l.establish(t, p)
		for _, change := range []struct{ kind, patch string }{
			{"configurations", `{"spec":{"remote":{"cidr":{"external":["10.99.0.0/16"]}}}}`},
			{"gatewayclients", `{"spec":{"endpoint":{"port":1}}}`},
			{"publickeies", `{"spec":{"publicKey":"` + strings.Repeat("A", 43) + `="}}`},
		} {
			for where, peer := range map[string]string{consumer: p.ID, p.ID: consumer} {
				objects := l.clusters[where].any.Resource(networking(change.kind)).Namespace("liqo-tenant-" + peer)
				found, err := objects.List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				for _, o := range found.Items {
					_, err = objects.Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(change.patch),
						metav1.PatchOptions{})
					require.NoError(t, err, "%s %s on %s", change.kind, o.GetName(), where)
				}
			}
		}
		l.requireBroken(t, p)
		l.establish(t, p)
		l.requireConnected(t, p)
		l.remove(t, p)
	}
}

// requireBroken waits until Observe reports a broken network.
func (l *netLab) requireBroken(t *testing.T, p fleet.Provider) {
	t.Helper()
	l.requireSeen(t, p, func(o backend.Observation) bool { return o.Network != "" })
}

// requireWhole waits until the network works again and the Node is Ready.
func (l *netLab) requireWhole(t *testing.T, p fleet.Provider, a fleet.Attempt) {
	t.Helper()
	l.requireSeen(t, p, func(o backend.Observation) bool { return o.Network == "" && len(o.Heard) == 2 })
	l.requireReady(t, a, corev1.ConditionTrue)
}

func (l *netLab) requireSeen(t *testing.T, p fleet.Provider, is func(backend.Observation) bool) {
	t.Helper()
	began := time.Now()
	var seen backend.Observation
	err := poll(within(t, 3*time.Minute), func(ctx context.Context) (bool, error) {
		found, err := l.b.Observe(ctx, p)
		if err == nil {
			seen = found
		}
		return err == nil && is(seen), nil
	})
	require.NoError(t, err, "last seen: %+v", seen)
	t.Logf("STEP %s: network %q after %.1f s, quiet for %s", t.Name(),
		seen.Network, time.Since(began).Seconds(), seen.Quiet)
}

func (l *netLab) requireReady(t *testing.T, a fleet.Attempt, want corev1.ConditionStatus) {
	t.Helper()
	err := poll(within(t, 3*time.Minute), func(ctx context.Context) (bool, error) {
		node, err := l.node(ctx, a.ObjectName())
		if err != nil {
			return false, nil
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == want, nil
			}
		}
		return false, nil
	})
	require.NoError(t, err, "Ready of %s is not %s", a.ObjectName(), want)
}
