package zz_lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func (w *world) requireNothing(t *testing.T) {
	t.Helper()
	found, err := w.objects(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

func requireStage(t *testing.T, err error, stages ...backend.Stage) {
	t.Helper()
	var e *backend.StageError
	require.ErrorAs(t, err, &e)
	require.Contains(t, stages, e.Stage)
	t.Logf("as expected: %v", err)
}

// A provider whose Liqo stops in mid-handshake.
func TestStalledTenant(t *testing.T) {
	w := newWorld(t)
	b, p := w.backend(t), w.provider(1)
	stopped := false
	t.Cleanup(func() { _ = w.signal("provider1-liqo-cm", syscall.SIGCONT) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := b.Establish(ctx, p, func(stage backend.Stage, _ string) {
		if stage == backend.StageSignedNonce && !stopped {
			stopped = true
			require.NoError(t, w.signal("provider1-liqo-cm", syscall.SIGSTOP))
		}
	})
	require.True(t, stopped)
	requireStage(t, err, backend.StageTenant)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, w.signal("provider1-liqo-cm", syscall.SIGCONT))
	require.NoError(t, b.Establish(t.Context(), p, nil), "resumed")

	// Established, then stopped: the Tenant's finalizer holds Unpeer until Liqo goes on.
	require.NoError(t, w.signal("provider1-liqo-cm", syscall.SIGSTOP))
	ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	requireStage(t, b.Unpeer(ctx, p, nil), backend.StageTenantGone, backend.StageIdentityGone)
	// Half removed, it can be established again only after Liqo goes on.
	ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	requireStage(t, b.Establish(ctx, p, nil), backend.StageTenant, backend.StageNonce)
	require.NoError(t, w.signal("provider1-liqo-cm", syscall.SIGCONT))
	require.NoError(t, b.Unpeer(t.Context(), p, nil))
	w.requireNothing(t)
}

// Establish cut at any time, by a cancel; another backend removes what is there, or goes on.
func TestCutAnywhere(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		after := time.Duration(i) * 45 * time.Millisecond
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			err := w.backend(t).Establish(ctx, w.provider(2), nil)
			t.Log(err)
			if i%3 == 2 {
				require.NoError(t, w.backend(t).Establish(t.Context(), w.provider(2), nil))
			}
			require.NoError(t, w.backend(t).Unpeer(t.Context(), w.provider(2), nil))
			w.requireNothing(t)
		})
	}
}

// Join cut at any time.
func TestJoinCutAnywhere(t *testing.T) {
	w := newWorld(t)
	p := w.provider(1)
	require.NoError(t, w.backend(t).Establish(t.Context(), p, nil))
	for i := range 8 {
		after := time.Duration(i) * 150 * time.Millisecond
		a := backend.Attempt{Group: "contract", Instance: fleet.InstanceName("contract", fleet.NewEpoch(time.Now()), 100+i), Number: 1, Provider: p}
		ctx, cancel := context.WithTimeout(t.Context(), after)
		_, err := w.backend(t).Join(ctx, backend.NodeSpec{Attempt: a, Shape: corev1.ResourceList{"cpu": *q("1"), "memory": *q("1Gi"), "pods": *q("10")}}, nil)
		cancel()
		t.Log(after, err)
		start := time.Now()
		require.NoError(t, w.backend(t).Leave(t.Context(), a, nil))
		t.Logf("leave %.2f s", time.Since(start).Seconds())
		found, err := w.backend(t).List(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, found)
	}
	require.NoError(t, w.backend(t).Unpeer(t.Context(), p, nil))
	w.requireNothing(t)
}

// A kubeconfig that is mended while Unpeer runs is used without a restart.
func TestRotated(t *testing.T) {
	w := newWorld(t)
	good, err := os.ReadFile(w.of(w.provider(1)).config)
	require.NoError(t, err)
	secrets := w.consumer().kube.CoreV1().Secrets("default")
	ref := &fleet.SecretRef{Namespace: "default", Name: "provider1"}
	write := func(content []byte) {
		_ = secrets.Delete(t.Context(), ref.Name, metav1.DeleteOptions{})
		_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}, Data: map[string][]byte{"kubeconfig": content}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	t.Cleanup(func() { _ = secrets.Delete(context.Background(), ref.Name, metav1.DeleteOptions{}) })
	p := backend.Provider{ID: "provider1", Credentials: fleet.Credentials{SecretRef: ref}}
	write(good)
	b := w.backend(t)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	peers, err := b.Peers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []backend.Provider{p}, peers)
	write([]byte("nonsense"))
	n := 0
	require.NoError(t, b.Unpeer(t.Context(), p, func(stage backend.Stage, message string) {
		t.Log(stage, message)
		if n++; n == 3 {
			write(good)
		}
	}))
	w.requireNothing(t)
}

// The other direction of a two-way peering is neither used up nor harmed.
func TestTwoWay(t *testing.T) {
	w := newWorld(t)
	b, p := w.backend(t), w.provider(1)
	reverse := func(verb string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(w.bin, "liqo", "liqoctl"), verb,
			"--kubeconfig", w.of(p).config, "--remote-kubeconfig", w.consumer().config, "--skip-confirm").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	reverse("authenticate")
	require.NoError(t, b.Establish(t.Context(), p, nil))
	peers, err := b.Peers(t.Context())
	require.NoError(t, err)
	require.Len(t, peers, 1)
	require.ErrorIs(t, b.Unpeer(t.Context(), p, nil), backend.ErrInUse)
	reverse("unauthenticate")
	require.Eventually(t, func() bool {
		list, err := w.consumer().liqo.Resource(tnRes).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	}, 20*time.Second, 100*time.Millisecond)
	require.NoError(t, b.Unpeer(t.Context(), p, nil))
	w.requireNothing(t)
	for c, ns := range map[*cl]string{w.consumer(): "liqo-tenant-provider1", w.of(p): "liqo-tenant-consumer"} {
		_, err := c.kube.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		require.NoError(t, err, "the namespace was there before us and stays")
		require.NoError(t, c.kube.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	}
}

// A drained tenant refuses even to hear of a slice.
func TestDrained(t *testing.T) {
	w := newWorld(t)
	b, p := w.backend(t), w.provider(2)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	undo, err := w.deny("Drained")(t.Context(), p)
	require.NoError(t, err)
	require.ErrorIs(t, b.Establish(t.Context(), p, nil), backend.ErrDenied)
	a := backend.Attempt{Group: "contract", Instance: fleet.InstanceName("contract", fleet.NewEpoch(time.Now()), 77), Number: 1, Provider: p}
	start := time.Now()
	_, err = b.Join(t.Context(), backend.NodeSpec{Attempt: a, Shape: corev1.ResourceList{"cpu": *q("1"), "memory": *q("1Gi"), "pods": *q("10")}}, nil)
	require.ErrorIs(t, err, backend.ErrDenied)
	t.Logf("%.1f s: %v", time.Since(start).Seconds(), err)
	require.NoError(t, b.Leave(t.Context(), a, nil))
	require.NoError(t, undo(t.Context()))
	require.NoError(t, b.Unpeer(t.Context(), p, nil))
	w.requireNothing(t)
}
