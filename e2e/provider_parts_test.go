package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// tenantDeleted deletes our Tenant on the provider. The node is lost, and its pod moves to another provider. No Tenant
// is created again while the refusal is in effect. The refusal ends when an operator deletes its record.
func tenantDeleted(ctx context.Context, t *testing.T, s *stack) {
	first, second := s.providers[0], s.providers[1]
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	r.scaledOut(ctx, 1)
	items, err := first.list(ctx, tenants)
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.NoError(t, first.liqo.Resource(tenants).Namespace(items[0].GetNamespace()).Delete(ctx, items[0].GetName(),
		metav1.DeleteOptions{}))

	r = newRun(t, s)
	r.until(ctx, "a node elsewhere", 5*time.Minute, func(ctx context.Context) error { return r.nodesOn(ctx, second, 1) })
	r.until(ctx, "the node there is gone", time.Minute,
		func(ctx context.Context) error { return r.nodesOn(ctx, first, 0) })
	refuses := func(ctx context.Context) error {
		phase, err := s.peeringPhase(ctx, first)
		if err == nil && phase != fleet.Refusing {
			err = fmt.Errorf("the peering with %s is %s", first.name, phase)
		}
		return err
	}
	r.until(ctx, "it refuses", time.Minute, refuses)
	r.during(ctx, "no Tenant comes back", 70*time.Second, func(ctx context.Context) error {
		if err := refuses(ctx); err != nil {
			return err
		}
		return first.count(ctx, tenants, 0)
	})
	require.NoError(t, r.counts(ctx, 1))
	require.NoError(t, s.consumer.kube.CoreV1().ConfigMaps("liqo-tenant-"+first.name).Delete(ctx,
		"liqo-autoscaler-refused", metav1.DeleteOptions{}))
	r.firstForgets(ctx) // the provider is checked every five minutes
	r.workDone(ctx)
	r.until(ctx, "provider is well", 3*time.Minute, r.condition(first, ""))
}

// forceUnpeered kills the API server of a provider with four nodes, and an operator removes Liqo's peering on the
// consumer by force. When the API server is back, the objects that remain there are found and removed.
func forceUnpeered(ctx context.Context, t *testing.T, s *stack) {
	r, sab := fourDie(ctx, t, s)
	first := s.providers[0]
	require.NoError(t, s.liqoctl(ctx, s.consumer, "force", "unpeer", first.name))
	r.done("liqoctl force unpeer")
	r.until(ctx, "the dead nodes are gone", 2*time.Minute,
		func(ctx context.Context) error { return r.nodesOn(ctx, first, 0) })
	sab.repair(ctx)
	r.until(ctx, "nothing is left there", 16*time.Minute, func(ctx context.Context) error { return clean(ctx, first) })
	r.until(ctx, "provider is well", 3*time.Minute, r.condition(first, ""))
	r.workDone(ctx)
	r.firstForgets(ctx)
}

// fourDie creates four nodes on the first provider, kills its API server, and waits until the pods run on the other
// provider. Kubernetes takes most of a minute to mark the Nodes NotReady. From then on budgets.unready counts, and
// two more minutes pass. CA causes one of these minutes: it treats dead nodes that are younger than 15 minutes as
// nodes that are still starting (CA clusterstate.go, NotStarted). At most a third of all instances is lost in one
// minute. When the first nodes are lost, CA therefore creates no node for their pods. The pods wait until the next
// nodes are lost, a minute later.
func fourDie(ctx context.Context, t *testing.T, s *stack) (*run, sabotage) {
	first, second := s.providers[0], s.providers[1]
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 4, "1500m"))
	r.scaledOut(ctx, 4)
	r.until(ctx, "pods running", time.Minute,
		func(ctx context.Context) error { return running(ctx, s.consumer, "work", 4) })

	r.lookedAt(ctx)

	r = newRun(t, s)
	killed := time.Now()
	sab := apiServerDies(ctx, r)
	r.until(ctx, "the nodes are NotReady", 3*time.Minute, func(ctx context.Context) error {
		return r.noneReady(ctx, first)
	})
	notReady := time.Now()
	r.until(ctx, "a pod elsewhere", patience+2*time.Minute, func(ctx context.Context) error {
		return r.oneRuns(ctx, second)
	})
	fmt.Printf("STEP %s/a pod elsewhere, from NotReady on %.2f, from the kill on %.2f\n", t.Name(),
		time.Since(notReady).Seconds(), time.Since(killed).Seconds())
	r.until(ctx, "pods running elsewhere", 8*time.Minute, func(ctx context.Context) error {
		if err := r.nodesOn(ctx, second, 4); err != nil {
			return err
		}
		return running(ctx, s.consumer, "work", 4)
	})
	for _, c := range s.proxy.Calls(func(c ca.Call) bool { return c.Seq > r.since && c.Method == ca.DeleteNodes }) {
		t.Errorf("CA gave something back: %s", c)
	}
	return r, sab
}

// lookedAt waits until two rounds of the observer have checked all providers with nodes. The silence of a provider
// counts from the first round that has checked this provider.
func (r *run) lookedAt(ctx context.Context) {
	first := int64(-1)
	r.until(ctx, "the provider is looked at", 3*time.Minute, func(ctx context.Context) error {
		saved, err := r.s.consumer.kube.CoreV1().ConfigMaps(observer.Namespace).Get(ctx, observer.Name(hub),
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		var last struct{ Round fleet.RoundID }
		if err := json.Unmarshal([]byte(saved.Data["observer.json"]), &last); err != nil {
			return err
		}
		if first < 0 {
			first = last.Round.Number
		}
		if rounds := last.Round.Number - first; rounds < 2 {
			return fmt.Errorf("rounds: %d", rounds)
		}
		return nil
	})
}

// noneReady requires that no Node on the provider is Ready.
func (r *run) noneReady(ctx context.Context, provider *cluster) error {
	nodes, err := r.nodesThere(ctx, provider)
	for i := range nodes {
		if isReady(&nodes[i]) {
			return fmt.Errorf("node %s is Ready", nodes[i].Name)
		}
	}
	return err
}

func (r *run) nodesThere(ctx context.Context, provider *cluster) ([]corev1.Node, error) {
	list, err := r.s.consumer.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: "liqo.io/remote-cluster-id=" + provider.name})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// oneRuns requires that a pod of the test's Deployment runs on a node of the provider.
func (r *run) oneRuns(ctx context.Context, provider *cluster) error {
	nodes, err := r.nodesThere(ctx, provider)
	if err != nil {
		return err
	}
	for i := range nodes {
		if err = running(ctx, r.s.consumer, "work", 1, nodes[i].Name); err == nil {
			return nil
		}
	}
	return fmt.Errorf("no pod runs on the %d nodes on %s: %w", len(nodes), provider.name, err)
}
