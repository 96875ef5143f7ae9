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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// moment is a state of a cluster. When a cluster reaches it, a process of the lab is stopped.
type moment struct {
	name  string
	watch func(context.Context) (watch.Interface, error)
	come  func(runtime.Object) bool
}

// freezeAt stops a process as soon as the cluster reaches the moment. The channel receives nil when the process is
// stopped. At the end of the test the process continues.
func freezeAt(ctx context.Context, s *steps, l *lab.Lab, cluster, process string, m moment) <-chan error {
	s.t.Helper()
	events, err := m.watch(ctx)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = l.Signal(cluster, process, syscall.SIGCONT) })
	frozen := make(chan error, 1)
	go func() {
		defer events.Stop()
		for e := range events.ResultChan() {
			if e.Type != watch.Deleted && m.come(e.Object) {
				frozen <- l.Signal(cluster, process, syscall.SIGSTOP)
				return
			}
		}
		frozen <- fmt.Errorf("watch for %s: ended early", m.name)
	}()
	return frozen
}

// awaitFrozen waits until freezeAt has stopped its process.
func awaitFrozen(s *steps, frozen <-chan error) {
	s.t.Helper()
	select {
	case err := <-frozen:
		require.NoError(s.t, err)
	case <-time.After(time.Minute):
		s.t.Fatal("what was to be frozen still runs a minute after the scale-out")
	}
	s.done("frozen")
}

// nonceFilled is the moment at which the provider has filled the nonce of a consumer that establishes a peering. The
// Tenant is created next.
func nonceFilled(provider *cluster) moment {
	return moment{name: "nonce of " + provider.name, watch: func(ctx context.Context) (watch.Interface, error) {
		return provider.kube.CoreV1().Secrets(corev1.NamespaceAll).Watch(ctx,
			metav1.ListOptions{LabelSelector: "liqo.io/nonce=true"})
	}, come: func(o runtime.Object) bool {
		secret, ok := o.(*corev1.Secret)
		return ok && len(secret.Data["nonce"]) > 0
	}}
}

// tenantAnswered is the moment at which the provider has answered the Tenant with credentials.
func tenantAnswered(provider *cluster) moment {
	return liqoMoment(provider, tenants, func(o *unstructured.Unstructured) bool {
		_, answered, _ := unstructured.NestedMap(o.Object, "status", "authParams")
		return answered
	})
}

// sliceMade is the moment at which the consumer has a slice without an answer.
func sliceMade(consumer *cluster) moment {
	return liqoMoment(consumer, resourceSlices, func(*unstructured.Unstructured) bool { return true })
}

func liqoMoment(c *cluster, r schema.GroupVersionResource, come func(*unstructured.Unstructured) bool) moment {
	return moment{name: r.Resource + " of " + c.name, watch: func(ctx context.Context) (watch.Interface, error) {
		return c.liqo.Resource(r).Watch(ctx, metav1.ListOptions{})
	}, come: func(o runtime.Object) bool {
		u, ok := o.(*unstructured.Unstructured)
		return ok && come(u)
	}}
}

// freezeOnNonce stops the provider's Liqo controller manager as soon as it has filled the nonce of a consumer that
// establishes a peering. The Tenant that follows therefore gets no answer.
func freezeOnNonce(ctx context.Context, s *steps, l *lab.Lab, provider *cluster) <-chan error {
	s.t.Helper()
	return freezeAt(ctx, s, l, provider.name, lab.LiqoManager, nonceFilled(provider))
}

func thaw(l *lab.Lab, provider *cluster) error {
	return l.Signal(provider.name, lab.LiqoManager, syscall.SIGCONT)
}

// awaitUnanswered waits until the provider is frozen and has one Tenant without an answer. It returns the UID of this
// Tenant.
func awaitUnanswered(ctx context.Context, s *steps, provider *cluster, frozen <-chan error) (uid types.UID) {
	s.t.Helper()
	awaitFrozen(s, frozen)
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
