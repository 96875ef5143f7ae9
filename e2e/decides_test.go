package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// agentConfig allows the consumer one node on the first provider, although the offer has capacity for four.
const agentConfig = `
provider: provider1
nodeLabels: {example.com/pool: burst}
offers:
- consumer: consumer
  name: first
  credentials: {secretRef: {namespace: liqo-autoscaler, name: provider1}}
  cap: {cpu: "3"}
`

// agentsClass is the line of an offer that gives the offer's slices the agent's class, so that the agent decides on
// them.
const agentsClass = "  class: liqo-autoscaler\n"

// TestDecides is the suite "decides". The first provider's agent grants and denies its slices, which have the agent's
// class. When the first provider has no capacity for a node, the node is created on the second provider, whose offer
// is a Secret. The denial does not count as a failure of the first provider. All processes, including the agent, have
// their own accounts. The server reads the market. The worker's access to the first provider is renewed at the start.
// During the whole suite, the first provider denies us Liqo's default class.
func TestDecides(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 13*time.Minute)
	defer cancel()
	withClass := strings.Replace(offers, "price: 1\n", "price: 1\n"+agentsClass, 1)
	withClass, _, _ = strings.Cut(withClass, "- name: second")
	s := newStack(ctx, t, "decides", groups+"  budgets: {join: 40s}\n", withClass, withMarket, withOfferSecrets)
	if s.lab.OneSlice() {
		t.Skip("this Liqo carries one slice per provider")
	}
	first := s.providers[0]
	s.install(ctx, first, "liqo-autoscaler-agent", "--values", leastAgent(t), "--set",
		"grantSlices=true,denyDefaultClass=true,offers[0].consumer="+lab.Consumer, "--show-only", "templates/policy.yaml")
	s.startAgent(ctx, first, agentConfig, "--grant-slices")
	_, err := s.try(ctx, nil, nil, s.binary, "provider-access", "renew", "--duration", "1h", "--file",
		filepath.Join(s.accounts, first.name+".kubeconfig"))
	require.NoError(t, err)
	s.offerBySecret(ctx, s.providers[1])
	offload(ctx, newSteps(t), s.consumer)

	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	there := r.scaledOut(ctx, 1)
	r.attemptOn(ctx, there[0], 1, first)
	slices, err := first.list(ctx, resourceSlices)
	require.NoError(t, err)
	require.Len(t, slices, 1)
	class, _, _ := unstructured.NestedString(slices[0].Object, "spec", "class")
	require.Equal(t, "liqo-autoscaler", class)

	r = newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "more", 1, "1500m"))
	elsewhere := r.scaledOut(ctx, 1)
	r.attemptOn(ctx, elsewhere[0], 2, s.providers[1])
	assert.NoError(t, r.named(elsewhere[0], "Denied ("+string(fleet.CodeNoCapacity)+")",
		"more than the offer to consumer: cpu 1 of 2"))
	r.until(ctx, "denied slice gone", time.Minute,
		func(ctx context.Context) error { return first.count(ctx, resourceSlices, 1) })
	_, err = s.consumer.node(ctx, there[0])
	require.NoError(t, err, "the first node stays")
	phase, err := s.peeringPhase(ctx, first)
	require.NoError(t, err)
	require.Equal(t, fleet.Established, phase)

	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.until(ctx, "first provider clean", 3*time.Minute, func(ctx context.Context) error { return clean(ctx, first) })
	r = newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "again", 1, "1500m"))
	again := r.scaledOut(ctx, 1)
	r.attemptOn(ctx, again[0], 1, first)
	require.NoError(t, undeploy(ctx, s.consumer, "more"))
	require.NoError(t, undeploy(ctx, s.consumer, "again"))
	r.scaledIn(ctx, append(again, elsewhere...), there...)
	defaultClassDenied(ctx, t, s)
}

// defaultClassDenied removes the class from the first offer, so that the worker requests Liqo's own class. The
// provider's API server denies Liqo the grant, and Liqo only logs this. The attempt ends with budgets.join, and the
// node is created on the second provider. Cluster Autoscaler sees no error.
func defaultClassDenied(ctx context.Context, t *testing.T, s *stack) {
	first, file := s.providers[0], filepath.Join(s.dir, "offers.yaml")
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	withoutClass := strings.Replace(string(written), agentsClass, "", 1)
	require.NotEqual(t, string(written), withoutClass)
	require.NoError(t, os.WriteFile(file, []byte(withoutClass), 0o600))
	r := newRun(t, s)
	// A slice may arrive before Liqo has set its consumer. Liqo does not accept a slice without a consumer, and the
	// policy refuses changes of such a slice.
	none := func(ctx context.Context) error {
		all, err := first.list(ctx, resourceSlices)
		for _, slice := range all {
			if of, _, _ := unstructured.NestedString(slice.Object, "spec", "consumerClusterID"); of != "" {
				err = fmt.Errorf("slice %s of %s is there", slice.GetName(), of)
			}
		}
		return err
	}
	r.during(ctx, "no older offer is used", 2*discovery.Recent, none)

	require.NoError(t, deploy(ctx, s.consumer, "denied", 2, "800m"))
	ids := r.booked(ctx, 1)
	r.until(ctx, "given up on the first", 2*time.Minute, func(ctx context.Context) error {
		require.NoError(t, none(ctx))
		_, err := s.givenUp(instanceName(ids[0]), 1)
		return err
	})
	assert.NoError(t, r.named(ids[0], "waiting for "+string(backend.StageSliceAuth)+":"))
	require.NoError(t, logged(filepath.Join(s.lab.Root, "log", lab.Consumer+"-crd-replicator.log"),
		"the agent of this cluster decides on grants; request class liqo-autoscaler"))
	r.until(ctx, "node from the second", 2*time.Minute, func(ctx context.Context) error {
		_, err := s.consumer.node(ctx, ids[0])
		return err
	})
	r.attemptOn(ctx, ids[0], 2, s.providers[1])
	require.NoError(t, undeploy(ctx, s.consumer, "denied"))
	r.peeringEnds(ctx, first)
	r.scaledIn(ctx, ids)
}

// attemptOn requires that the instance's Node belongs to this attempt on this provider.
func (r *run) attemptOn(ctx context.Context, id string, attempt int, on *cluster) {
	r.t.Helper()
	node, err := r.s.consumer.node(ctx, id)
	require.NoError(r.t, err)
	require.Equal(r.t, on.name, node.Labels["liqo.io/remote-cluster-id"])
	require.Equal(r.t, fleet.ObjectName(instanceName(id), attempt), node.Name)
}

// startAgent starts the agent of a provider with the chart's permissions. Without a discovery server in its arguments,
// the agent writes its measurements to the consumer's tenant namespace.
func (s *stack) startAgent(ctx context.Context, provider *cluster, config string, args ...string) *proc.Process {
	s.t.Helper()
	s.install(ctx, provider, "liqo-autoscaler-agent", "--values", leastAgent(s.t), "--set", "grantSlices=true",
		"--show-only", "templates/rbac.yaml")
	account, name := agentAccount+"-"+provider.name, "agent-"+provider.name
	s.chartAccount(ctx, provider, agentAccount, account)
	file := filepath.Join(s.dir, name+".yaml")
	require.NoError(s.t, os.WriteFile(file, []byte(config), 0o600))
	program := s.build(ctx, "liqo-autoscaler-agent", filepath.Dir(s.binary))
	return s.startProgram(program, "agent", name, append([]string{
		"--kubeconfig", filepath.Join(s.accounts, account+".kubeconfig"), "--lease-namespace", chartNamespace,
		"--config", file, "--metrics-listen", "", "--health-listen", ""}, args...)...)
}

// offerBySecret turns the Secret with a provider's kubeconfig into an offer that is more expensive than every other
// offer. It waits until the market contains the offer.
func (s *stack) offerBySecret(ctx context.Context, provider *cluster) {
	s.t.Helper()
	info, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": map[string]string{"autoscaling": "true"}},
		"stringData": map[string]string{"info": `resources: {cpu: "8", memory: 16Gi, pods: "100", ephemeral-storage: 100Gi}
price: 2
lingerSeconds: 0
network: {mode: none}
`}})
	require.NoError(s.t, err)
	_, err = s.consumer.kube.CoreV1().Secrets(chartNamespace).Patch(ctx, provider.name, types.MergePatchType, info,
		metav1.PatchOptions{})
	require.NoError(s.t, err)
	s.inMarket(ctx, provider)
}

// inMarket waits until the worker has published an offer of the provider in the market.
func (s *stack) inMarket(ctx context.Context, provider *cluster) {
	s.t.Helper()
	newSteps(s.t).until(ctx, "offer in the market", time.Minute, func(ctx context.Context) error {
		market, err := s.consumer.kube.CoreV1().ConfigMaps(chartNamespace).Get(ctx, "liqo-autoscaler-market-"+hub,
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		return names(fmt.Sprint(market.Data, market.BinaryData), provider.name)
	})
}
