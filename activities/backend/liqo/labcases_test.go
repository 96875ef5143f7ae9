package liqo_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Establish runs with new credentials. The peering works, and its objects record the new credentials. Then the
// kubeconfig in a Secret is broken, and the test repairs it while a call of the backend runs. The call uses the
// repaired kubeconfig without a restart.
func TestLabRotatedCredentials(t *testing.T) {
	l := theLab(t)
	good, err := os.ReadFile(l.clusters["provider1"].account)
	require.NoError(t, err)
	secrets := l.clusters[consumer].kube.CoreV1().Secrets("default")
	ref := &fleet.SecretRef{Namespace: "default", Name: "provider1"}
	write := func(content []byte) {
		_ = secrets.Delete(t.Context(), ref.Name, metav1.DeleteOptions{})
		_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: ref.Name},
			Data: map[string][]byte{"kubeconfig": content}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	t.Cleanup(func() { _ = secrets.Delete(context.Background(), ref.Name, metav1.DeleteOptions{}) })
	b, p := l.backend(t), l.provider(1)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	p.Credentials = fleet.Credentials{SecretRef: ref}
	write(good)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	peers, err := b.Peers(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, peers, 1)
	require.Equal(t, fleet.Provider{ID: p.ID, Credentials: p.Credentials}, peers[0])
	write([]byte("not a kubeconfig"))
	told := 0
	require.NoError(t, b.RemovePeering(t.Context(), p, func(backend.Stage, string) {
		if told++; told == 3 {
			write(good)
		}
	}))
	l.requireNothing(t)
}

// In a two-way peering, the opposite direction uses the same namespaces as our direction. Our peering stays as long
// as the opposite direction exists. The removal of our peering does not harm the opposite direction.
func TestLabTwoWay(t *testing.T) {
	l := theLab(t)
	b, p := l.backend(t), l.provider(1)
	here, there := l.clusters[consumer], l.clusters["provider1"]
	require.NoError(t, l.liqoctl(t.Context(), "authenticate", there, here))
	require.NoError(t, b.Establish(t.Context(), p, nil))
	require.ErrorIs(t, b.RemovePeering(t.Context(), p, nil), backend.ErrInUse)
	require.NoError(t, l.unpeerByHand(t.Context(), there, here))
	require.NoError(t, poll(t.Context(), func(ctx context.Context) (bool, error) {
		tenants, err := here.any.Resource(authentication("tenants")).List(ctx, metav1.ListOptions{})
		return err == nil && len(tenants.Items) == 0, err
	}))
	require.NoError(t, b.RemovePeering(t.Context(), p, nil))
	l.requireNothing(t)
	for c, namespace := range map[*cluster]string{here: "liqo-tenant-provider1", there: "liqo-tenant-consumer"} {
		_, err := c.kube.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		require.NoError(t, err, "the namespace was there before us")
		require.NoError(t, c.removeNamespace(t.Context(), namespace))
	}
}

// Up to Liqo 1.1 a provider can serve one node. A second Join is refused, and the first node stays unchanged.
func TestLabOneSlice(t *testing.T) {
	l := theLab(t)
	if !oneSlice() {
		t.Skip("this Liqo carries several nodes on a provider: backendtest TwoNodesOnePeering, TestLabNetworkTen")
	}
	b, p := newBackend(t, l.config(t)), l.provider(1)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	first, second := attempt(20, p), attempt(21, p)
	made, err := b.Join(within(t, time.Minute), nodeSpec(first), nil)
	require.NoError(t, err)
	_, err = b.Join(within(t, time.Minute), nodeSpec(second), nil)
	require.ErrorIs(t, err, backend.ErrFull)
	require.ErrorContains(t, err, first.ObjectName())
	require.NoError(t, b.Return(within(t, time.Minute), second, nil))
	node, err := l.node(t.Context(), first.ObjectName())
	require.NoError(t, err)
	require.Equal(t, made.UID, string(node.UID))
	require.NoError(t, b.Return(within(t, time.Minute), first, nil))
	require.NoError(t, b.RemovePeering(within(t, time.Minute), p, nil))
	l.requireNothing(t)
}

// A drained Tenant withdraws the consumer's permission to request a slice. Join still reports a denial.
func TestLabDrained(t *testing.T) {
	l := theLab(t)
	b, p := l.backend(t), l.provider(2)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	undo, err := l.deny("Drained")(t.Context(), p)
	require.NoError(t, err)
	require.ErrorIs(t, b.Establish(t.Context(), p, nil), backend.ErrDenied)
	a := attempt(1, p)
	_, err = b.Join(within(t, time.Minute), nodeSpec(a), nil)
	require.ErrorIs(t, err, backend.ErrDenied)
	require.NoError(t, b.Return(within(t, time.Minute), a, nil))
	require.ErrorIs(t, b.RemovePeering(within(t, time.Minute), p, nil), backend.ErrDenied, "the Tenant is its word")
	require.NoError(t, undo(t.Context()))
	require.NoError(t, b.RemovePeering(t.Context(), p, nil))
	l.requireNothing(t)
}

// A provider removes our Tenant. crd-replicator then lacks the permission to remove its own finalizers, but Return
// and RemovePeering still complete.
func TestLabRevoked(t *testing.T) {
	l := theLab(t)
	b, p := l.backend(t), l.provider(2)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	a := attempt(2, p)
	_, err := b.Join(within(t, time.Minute), nodeSpec(a), nil)
	require.NoError(t, err)
	require.NoError(t, l.revoke(t.Context(), p))
	l.requireRefusedAgain(t, p)
	began := time.Now()
	tell := func(stage backend.Stage, message string) {
		t.Logf("%5.1f %s: %.120s", time.Since(began).Seconds(), stage, message)
	}
	require.NoError(t, b.Return(within(t, time.Minute), a, tell))
	require.ErrorIs(t, b.RemovePeering(within(t, time.Minute), p, tell), backend.ErrDenied)
	l.requireForgiven(t, b, p)
}

// requireRefusedAgain waits until a refusal has expired and the backend has recorded it again. The backend records it
// again because our Identity still exists.
func (l *lab) requireRefusedAgain(t *testing.T, p fleet.Provider) {
	t.Helper()
	b := l.backendFor(t, time.Second)
	var first *fleet.ProviderRefusal
	require.NoError(t, poll(within(t, time.Minute), func(ctx context.Context) (bool, error) {
		found, err := b.Refusal(ctx, p)
		if err != nil || found == nil || first == nil {
			first = found
			return false, err
		}
		return found.Until.After(first.Until), nil
	}))
}

// requireForgiven waits until the refusal of a provider has expired. It then requires that no object is left.
func (l *lab) requireForgiven(t *testing.T, b *liqo.Backend, p fleet.Provider) {
	t.Helper()
	require.NoError(t, poll(within(t, time.Minute), func(ctx context.Context) (bool, error) {
		refusing, err := b.Refusal(ctx, p)
		return err == nil && refusing == nil, err
	}))
	require.NoError(t, b.RemovePeering(within(t, time.Minute), p, nil))
	l.requireNothing(t)
}

// The provider has removed our Tenant. No node can join. The backend makes the peering again only after refusedFor
// has passed.
func TestLabRevokedIsLeftAlone(t *testing.T) {
	l := theLab(t)
	b, p := l.backend(t), l.provider(2)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	require.NoError(t, l.revoke(t.Context(), p))
	a := attempt(3, p)
	_, err := b.Join(within(t, time.Minute), nodeSpec(a), nil)
	require.ErrorIs(t, err, backend.ErrDenied)
	require.ErrorContains(t, err, "has removed its Tenant")
	require.ErrorIs(t, b.Establish(within(t, time.Minute), p, nil), backend.ErrDenied)
	require.NoError(t, b.Return(within(t, time.Minute), a, nil))
	require.ErrorIs(t, b.RemovePeering(within(t, time.Minute), p, nil), backend.ErrDenied,
		"while the peering exists without a Tenant, the refusal is found again")
	l.requireForgiven(t, b, p)
}

// TestLabTimes runs each step in the life of a node three times, and prints its shortest duration.
func TestLabTimes(t *testing.T) {
	l := theLab(t)
	b, p := l.backend(t), l.provider(1)
	var order []string
	best := map[string]time.Duration{}
	step := func(name string, verb func() error) {
		t.Helper()
		began := time.Now()
		require.NoError(t, verb(), name)
		took := time.Since(began)
		if _, known := best[name]; !known {
			order = append(order, name)
			best[name] = took
		}
		best[name] = min(best[name], took)
	}
	for i := range 3 {
		a := attempt(200+i, p)
		join := func() error {
			_, err := b.Join(t.Context(), nodeSpec(a), nil)
			return err
		}
		step("establish", func() error { return b.Establish(t.Context(), p, nil) })
		step("establish again", func() error { return b.Establish(t.Context(), p, nil) })
		step("join", join)
		step("join again", join)
		step("drain", func() error { return b.Drain(t.Context(), a, false, nil) })
		step("leave", func() error { return b.Return(t.Context(), a, nil) })
		step("unpeer", func() error { return b.RemovePeering(t.Context(), p, nil) })
	}
	for _, name := range order {
		fmt.Printf("STEP %s/%s %.2f\n", t.Name(), name, best[name].Seconds())
	}
}
