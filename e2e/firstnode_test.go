package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// hub is not the default hub, so that the tests also cover the prefix that an operator sees in each workflow id.
const (
	hub   = "lab"
	group = "burst"
)

// groups is the config of the suite's node groups. The taint does not repel pods; it shows that the nodes and the
// template have the same taint.
const groups = `
hub: lab
nodeGroups:
- id: burst
  max: 3
  shape: {cpu: "2", memory: 4Gi, pods: "20", ephemeral-storage: 10Gi}
  labels: {example.com/pool: burst}
  taints: [{key: example.com/burst, value: "true", effect: PreferNoSchedule}]
`

// offers makes the first provider the better choice while it has free capacity. With a Liqo older than 1.2, each
// provider serves one node. Both kinds of credentials are used: a file, and a Secret that the chart lets the worker
// read by name. envNetwork sets the network.
const offers = `
offers:
- name: first
  credentials: {kubeconfigFile: $ACCOUNTS/provider1.kubeconfig}
  lendable: {cpu: "8", memory: 16Gi, pods: "100", ephemeral-storage: 100Gi}
  price: 1
  lingerSeconds: 0
  maxNodes: $MAX_NODES
  network: {mode: $NETWORK}
- name: second
  credentials: {secretRef: {namespace: liqo-autoscaler, name: provider2}}
  lendable: {cpu: "8", memory: 16Gi, pods: "100", ephemeral-storage: 100Gi}
  price: 2
  lingerSeconds: 0
  maxNodes: $MAX_NODES
  network: {mode: $NETWORK}
`

// TestFirstNode is the suite "first-node", the basis of all other suites. Its parts share one lab and one Cluster
// Autoscaler. Each part relies on the clean end of the part before, so the first failure ends the suite.
func TestFirstNode(t *testing.T) {
	firstNode(t, "first-node", groups, []part{
		{"WorkerKilledWhilePeering", killedWhilePeering(func(_ context.Context, r *run) {
			r.s.worker.Kill()
			r.s.worker = r.s.startWorker("worker")
		})},
	})
}

// firstNode runs the sequence of the first node. killed holds the parts in which a process is killed.
func firstNode(t *testing.T, suite, groups string, killed []part, options ...func(*stack)) {
	ctx, cancel := context.WithTimeout(context.Background(), 18*time.Minute)
	defer cancel()
	s := newStack(ctx, t, suite, groups, offers, options...)
	offload(ctx, newSteps(t), s.consumer)
	runParts(ctx, t, s, slices.Concat([]part{
		{"MutualTLS", mutualTLS},
		{"ThereAndBack", thereAndBack},
		{"TwoNodesOneTenant", twoNodesOneTenant},
	}, killed, []part{
		{"PeeringCancelled", peeringCancelled},
		{"ProvidersAsMade", providersAsMade},
		{"NoSecretKept", noSecretKept},
	}))
}

// thereAndBack creates one node for one pod that does not fit. The pod runs on the node. After the pod is deleted, the
// node is removed.
func thereAndBack(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m")) // the plain node has 1 CPU
	ids := r.scaledOut(ctx, 1)
	node, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	r.until(ctx, "pod running", time.Minute, func(ctx context.Context) error {
		return running(ctx, s.consumer, "work", 1, node.Name)
	})
	r.until(ctx, "pod running on the provider", 30*time.Second, func(ctx context.Context) error {
		return remotePods(ctx, s.providers[0], 1)
	})

	t.Run("TemplateIsTheNode", func(t *testing.T) {
		calls := s.proxy.Calls(func(c ca.Call) bool { return c.Method == ca.TemplateNodeInfo })
		require.NotEmpty(t, calls)
		first, second := templates(t, calls[0])
		require.Equal(t, first, second, "both wire generations carry the same node")
		extra, err := sameAsTemplate(first, node)
		require.NoError(t, err)
		t.Logf("labels on the node only: %v", extra)
		for _, label := range extra { // the group may use any provider
			require.Truef(t, undeclared(label) || strings.HasPrefix(label, labelProvider+"="), "the template lacks %s", label)
		}
	})

	way := []activities.Reason{activities.ReasonProviderSelected, activities.ReasonJoining, activities.ReasonNodeReady}
	r.events(ctx, node.Name, way...)
	described := s.tool(ctx, s.admin(lab.Consumer), nil, "kubectl", "describe", "node", node.Name)
	require.Contains(t, string(described), activities.ReasonProviderSelected)
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
	r.events(ctx, node.Name, append(way, activities.ReasonDraining, activities.ReasonDrained,
		activities.ReasonReleased)...)
}

// twoNodesOneTenant creates two nodes concurrently on one provider. They share its peering.
func twoNodesOneTenant(ctx context.Context, t *testing.T, s *stack) {
	if s.lab.OneSlice() {
		t.Skip("this Liqo carries one node per provider")
	}
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "pair", 2, "1500m")) // one pod per virtual node, and none on the plain node
	ids := r.scaledOut(ctx, 2)
	require.NoError(t, s.providers[0].count(ctx, tenants, 1))
	require.NoError(t, s.consumer.count(ctx, resourceSlices, 2))
	require.NoError(t, s.providers[0].count(ctx, resourceSlices, 2))
	require.NoError(t, clean(ctx, s.providers[1]))
	r.until(ctx, "pods running", time.Minute, func(ctx context.Context) error {
		return running(ctx, s.consumer, "pair", 2)
	})
	require.NoError(t, undeploy(ctx, s.consumer, "pair"))
	r.scaledIn(ctx, ids)
}

// killedWhilePeering kills a process before the provider has answered. The work continues from its last state, and no
// object is created twice.
func killedWhilePeering(kill func(context.Context, *run)) func(context.Context, *testing.T, *stack) {
	return func(ctx context.Context, t *testing.T, s *stack) {
		r := newRun(t, s)
		frozen := freezeOnNonce(ctx, r.steps, s.lab, s.providers[0])
		require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
		tenant := awaitUnanswered(ctx, r.steps, s.providers[0], frozen)
		kill(ctx, r)
		r.done("killed")
		r.until(ctx, "CA is answered", 2*time.Minute, func(ctx context.Context) error {
			_, err := s.client.Refresh(ctx, &protos.RefreshRequest{})
			return err
		})
		require.NoError(t, thaw(s.lab, s.providers[0]))
		ids := r.scaledOut(ctx, 1)
		left, err := s.providers[0].list(ctx, tenants)
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.Equal(t, tenant, left[0].GetUID(), "the same Tenant, not a new one")
		require.NoError(t, s.consumer.count(ctx, resourceSlices, 1))
		require.NoError(t, s.providers[0].count(ctx, resourceSlices, 1))
		require.NoError(t, undeploy(ctx, s.consumer, "work"))
		r.scaledIn(ctx, ids)
	}
}

// peeringCancelled cancels a stuck peering as an operator. The instance continues with the next provider. When the
// first provider continues, the unfinished peering is removed.
func peeringCancelled(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	frozen := freezeOnNonce(ctx, r.steps, s.lab, s.providers[0])
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	awaitUnanswered(ctx, r.steps, s.providers[0], frozen)
	require.NoError(t, s.cancel(ctx, "peering/"+s.providers[0].name))
	r.done("peering cancelled")
	ids := r.scaledOut(ctx, 1)
	require.NoError(t, r.named(ids[0], cancelledByHand), "not because the peering's time is over")
	require.NoError(t, s.providers[1].count(ctx, resourceSlices, 1))
	require.NoError(t, thaw(s.lab, s.providers[0]))
	firstClean := func(ctx context.Context) error { return clean(ctx, s.providers[0]) }
	r.until(ctx, "first provider clean", time.Minute, firstClean)
	r.during(ctx, "first provider stays clean", 3*time.Second, firstClean)
	require.NoError(t, s.consumer.count(ctx, identities, 2)) // the second provider has two: control plane and slice
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// providersAsMade requires that the tenant namespaces that providers have created for us still exist, and contain no
// objects of ours.
func providersAsMade(ctx context.Context, t *testing.T, s *stack) {
	for _, p := range s.providers {
		_, err := p.kube.CoreV1().Namespaces().Get(ctx, "liqo-tenant-"+lab.Consumer, metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, asMade(ctx, p))
	}
}

// noSecretKept requires that Temporal's database, the logs and the recorded calls contain no key and no token
// (invariant I10).
func noSecretKept(_ context.Context, t *testing.T, s *stack) {
	database := "temporal.db"
	if s.production != nil {
		database = "temporal.dump"
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, database), s.production.Contents(t), 0o600))
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, ".key") {
			continue // keys of Temporal's own certificates
		}
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // SQLite creates and removes its journal at any time
		}
		require.NoError(t, err)
		if filepath.Base(f) == database {
			require.Regexp(t, `"kubeconfigFile"|"secretRef"`, string(b),
				"histories can be read from the file, so what is not in it is not in them")
		}
		// the last value is the start of "PRIVATE KEY" in base64
		for i, secret := range append(s.tokens, "client-key-data", "PRIVATE KEY", "UFJJVkFURSBLRV") {
			require.False(t, bytes.Contains(b, []byte(secret)), "%s contains secret %d", f, i)
		}
	}
}
