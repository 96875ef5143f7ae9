package e2e_test

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// freezeOnNonce stops the provider's Liqo controller manager the moment it has filled the nonce of a consumer that peers, so
// that the Tenant which comes next stays unanswered. The channel gets nil once it stands still. The test's end thaws it.
func freezeOnNonce(ctx context.Context, s *steps, l *lab.Lab, provider *cluster) <-chan error {
	s.t.Helper()
	nonces, err := provider.kube.CoreV1().Secrets(corev1.NamespaceAll).Watch(ctx, metav1.ListOptions{LabelSelector: "liqo.io/nonce=true"})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = thaw(l, provider) })
	frozen := make(chan error, 1)
	go func() {
		defer nonces.Stop()
		for e := range nonces.ResultChan() {
			if secret, ok := e.Object.(*corev1.Secret); ok && len(secret.Data["nonce"]) > 0 {
				frozen <- l.Signal(provider.name, lab.LiqoManager, syscall.SIGSTOP)
				return
			}
		}
		frozen <- fmt.Errorf("watch nonces of %s: ended early", provider.name)
	}()
	return frozen
}

func thaw(l *lab.Lab, provider *cluster) error {
	return l.Signal(provider.name, lab.LiqoManager, syscall.SIGCONT)
}

// awaitUnanswered waits until the provider is frozen with one Tenant that it has not answered, and returns its UID.
func awaitUnanswered(ctx context.Context, s *steps, provider *cluster, frozen <-chan error) (uid types.UID) {
	s.t.Helper()
	select {
	case err := <-frozen:
		require.NoError(s.t, err)
	case <-time.After(time.Minute):
		s.t.Fatalf("%s: no nonce within a minute of the scale-out", provider.name)
	}
	s.done("provider frozen")
	unanswered := func(ctx context.Context) error {
		items, err := provider.list(ctx, tenants)
		if err != nil {
			return err
		}
		if len(items) != 1 {
			return fmt.Errorf("%d tenants", len(items))
		}
		uid = items[0].GetUID()
		if _, answered, _ := unstructured.NestedMap(items[0].Object, "status", "authParams"); answered {
			return fmt.Errorf("the tenant was answered before the provider froze")
		}
		return nil
	}
	s.until(ctx, "tenant made", 30*time.Second, unanswered)
	s.during(ctx, "tenant unanswered", time.Second, unanswered)
	return uid
}
