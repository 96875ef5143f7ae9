package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// patience is budgets.unready of the suite "provider". It is longer than a virtual kubelet takes to notice that its
// provider is away.
const patience = time.Minute

// TestProvider is the suite "provider". It covers the Nodes of a provider that dies, drains our Tenant or removes our
// account, and all Nodes when the consumer is cut off.
func TestProvider(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 58*time.Minute)
	defer cancel()
	config := strings.Replace(groups, "max: 3", "max: 8", 1) + fmt.Sprintf("  budgets: {unready: %s}\n", patience)
	s := newStack(ctx, t, "provider", config, offers)
	offload(ctx, newSteps(t), s.consumer)
	parts := []part{
		{"AccountRevoked", accountRevoked},
		{"TenantDrained", tenantDrained},
		{"TenantDeleted", tenantDeleted},
		{"ConsumerCut", consumerCut},
	}
	if !s.lab.OneSlice() { // these parts need four nodes on one provider
		parts = append(parts, part{"ForceUnpeered", forceUnpeered}, part{"ProviderDies", providerDies})
	}
	runParts(ctx, t, s, counted(parts))
}

// providerDies kills the API server of a provider with four nodes. Two nodes are lost in each of two successive
// minutes, and CA requests new nodes, which are created on the other provider. When the API server is back, no object
// of ours is left on the dead provider.
func providerDies(ctx context.Context, t *testing.T, s *stack) {
	r, sab := fourDie(ctx, t, s)
	first := s.providers[0]
	require.NoError(t, r.condition(first, fleet.ConditionUnreachable)(ctx))
	r.until(ctx, "the dead nodes are gone", 2*time.Minute, func(ctx context.Context) error {
		if err := r.counts(ctx, 4); err != nil {
			return err
		}
		return r.nodesOn(ctx, first, 0)
	})
	sab.repair(ctx)
	r.firstForgets(ctx)
	r.until(ctx, "the lost are no longer listed", time.Minute, func(ctx context.Context) error {
		snapshot, err := s.groupSnapshot(ctx)
		if n := len(snapshot.Instances); err == nil && n != 4 {
			err = fmt.Errorf("%d instances, want 4", n)
		}
		return err
	})
	r.until(ctx, "provider is well", 3*time.Minute, r.condition(first, ""))
	r.workDone(ctx)
}

// accountRevoked deletes our account on the provider, and creates another account later. The node and its pod stay
// unchanged, and no new object is created on the provider.
func accountRevoked(ctx context.Context, t *testing.T, s *stack) {
	first := s.providers[0]
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids := r.scaledOut(ctx, 1)
	node, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	onNode := func(ctx context.Context) error { return running(ctx, s.consumer, "work", 1, node.Name) }
	r.until(ctx, "pod running", time.Minute, onNode)
	before, err := first.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, before.Items, 1)

	account := "consumer-" + lab.Consumer
	require.NoError(t, first.kube.CoreV1().ServiceAccounts(chartNamespace).Delete(ctx, account, metav1.DeleteOptions{}))
	r.until(ctx, "credentials refused", 4*time.Minute, r.condition(first, fleet.ConditionCredentialsRefused))
	r.during(ctx, "pod runs on", patience+10*time.Second, func(ctx context.Context) error {
		after, err := first.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && (len(after.Items) != 1 || after.Items[0].UID != before.Items[0].UID) {
			err = fmt.Errorf("other pods on %s: %d", first.name, len(after.Items))
		}
		if err != nil {
			return err
		}
		return onNode(ctx)
	})
	require.NoError(t, r.counts(ctx, 1))

	s.anotherAccount(ctx, r.steps, first)
	r.until(ctx, "provider is well", 3*time.Minute, r.condition(first, ""))
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// anotherAccount makes a new account for us on the provider, in the file that its offer names.
func (s *stack) anotherAccount(ctx context.Context, timing *steps, provider *cluster) {
	s.t.Helper()
	require.NoError(s.t, s.grant(ctx, provider))
	timing.until(ctx, "another account", 30*time.Second, func(ctx context.Context) error {
		kubeconfig, err := s.granted(ctx, provider)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(s.accounts, provider.name+".kubeconfig"), kubeconfig, 0o600)
	})
	s.limited(ctx, filepath.Join(s.accounts, provider.name+".kubeconfig"))
}

// tenantDrained cordons our Tenant and then drains it. After the cordon our virtual node on this provider accepts no
// new pods. After the drain the node is lost, and its pod moves to another provider.
func tenantDrained(ctx context.Context, t *testing.T, s *stack) {
	first, second := s.providers[0], s.providers[1]
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	old := r.scaledOut(ctx, 1)
	require.NoError(t, setTenantCondition(ctx, first, "Cordoned"))
	cordoned := func(want bool) func(context.Context) error {
		return func(ctx context.Context) error {
			node, err := s.consumer.node(ctx, old[0])
			if err == nil && node.Spec.Unschedulable != want {
				err = fmt.Errorf("node %s is cordoned: %v", node.Name, !want)
			}
			return err
		}
	}
	r.until(ctx, "cordoned with the Tenant", 4*time.Minute, cordoned(true))
	require.NoError(t, r.counts(ctx, 1))
	require.NoError(t, setTenantCondition(ctx, first, "Active"))
	r.until(ctx, "uncordoned with it", 3*time.Minute, cordoned(false))

	r = newRun(t, s)
	require.NoError(t, setTenantCondition(ctx, first, "Drained"))
	r.until(ctx, "a node elsewhere", 5*time.Minute, func(ctx context.Context) error { return r.nodesOn(ctx, second, 1) })
	r.until(ctx, "the drained one is gone", time.Minute,
		func(ctx context.Context) error { return r.nodesOn(ctx, first, 0) })
	require.NoError(t, r.counts(ctx, 1))
	require.NoError(t, setTenantCondition(ctx, first, "Active"))
	r.workDone(ctx)
	r.peeringEnds(ctx, first) // the next part needs the provider's answer
	r.until(ctx, "provider is well", 3*time.Minute, r.condition(first, ""))
}

// consumerCut makes all providers silent for more than twice budgets.unready. No instance is lost, and everything
// continues as before when the providers are back.
func consumerCut(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids := r.scaledOut(ctx, 1)
	node, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	for _, p := range s.providers {
		r.freeze(p.name, lab.APIServer)
	}
	r.until(ctx, "node not ready", 3*time.Minute, func(ctx context.Context) error { return r.shown(ctx, ids[0], true) })
	r.until(ctx, "consumer is isolated", 4*time.Minute, r.condition(s.providers[0], fleet.ConditionConsumerIsolated))
	r.during(ctx, "nothing is lost", 2*patience+10*time.Second,
		func(ctx context.Context) error { return r.shown(ctx, ids[0], true) })
	for _, p := range s.providers {
		require.NoError(t, s.lab.Signal(p.name, lab.APIServer, syscall.SIGCONT))
	}
	r.until(ctx, "node ready again", 3*time.Minute, func(ctx context.Context) error { return r.shown(ctx, ids[0], false) })
	again, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	require.Equal(t, node.UID, again.UID)
	r.until(ctx, "provider is well", 3*time.Minute, r.condition(s.providers[0], ""))
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// condition requires that a provider's entity publishes a condition. If the parameter want is "", the entity must
// publish none.
func (r *run) condition(provider *cluster, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		var p fleet.ProviderSnapshot
		err := r.s.published(ctx, "provider/"+provider.name, &p)
		if got := p.Standing.Condition(); err == nil && got != want {
			err = fmt.Errorf("provider %s has condition %q (%s), want %q", provider.name, got, p.Standing.Message, want)
		}
		return err
	}
}

// nodesOn requires n of our Nodes on a provider, all Ready.
func (r *run) nodesOn(ctx context.Context, provider *cluster, n int) error {
	nodes, err := r.nodesThere(ctx, provider)
	if err != nil {
		return err
	}
	for i := range nodes {
		if !isReady(&nodes[i]) {
			return fmt.Errorf("node %s is not Ready", nodes[i].Name)
		}
	}
	if len(nodes) != n {
		return fmt.Errorf("%d nodes on %s, want %d", len(nodes), provider.name, n)
	}
	return nil
}

// workDone removes the test's Deployment. It waits until CA has released the Deployment's nodes, with one call or
// several.
func (r *run) workDone(ctx context.Context) {
	r.t.Helper()
	require.NoError(r.t, undeploy(ctx, r.s.consumer, "work"))
	r.until(ctx, "nothing left", 5*time.Minute, r.empty)
	r.until(ctx, "nothing listed", time.Minute, r.nothingListed)
	require.NoError(r.t, r.counts(ctx, 0))
}
