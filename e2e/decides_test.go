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

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// agentConfig lets the consumer have one node of the first provider, while the offer says that it has room for four.
const agentConfig = `
provider: provider1
nodeLabels: {example.com/pool: burst}
offers:
- consumer: consumer
  name: first
  credentials: {secretRef: {namespace: liqo-autoscaler, name: provider1}}
  cap: {cpu: "3"}
`

// TestDecides is the suite decides: the first provider's agent grants and denies its slices, which are of its class.
// What it has no room for comes from the second, whose offer is a Secret, and nothing is held against the first. Like
// the agent, all others have their accounts: the server reads the market, and the worker's access to the first is
// renewed.
func TestDecides(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 13*time.Minute)
	defer cancel()
	withClass := strings.Replace(offers, "price: 1\n", "price: 1\n  class: liqo-autoscaler\n", 1)
	withClass, _, _ = strings.Cut(withClass, "- name: second")
	s := newStack(ctx, t, "decides", groups, withClass, withMarket, withOfferSecrets)
	if s.lab.OneSlice() {
		t.Skip("this Liqo carries one slice per provider")
	}
	s.startAgent(ctx, s.providers[0], agentConfig, "--grant-slices")
	_, err := s.try(ctx, nil, nil, s.binary, "provider-access", "renew", "--duration", "1h", "--file",
		filepath.Join(s.accounts, s.providers[0].name+".kubeconfig"))
	require.NoError(t, err)
	s.offerBySecret(ctx, s.providers[1])
	offload(ctx, newSteps(t), s.consumer)
	first := s.providers[0]

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
		"beyond what is offered to consumer: cpu 1 of 2"))
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
}

// attemptOn wants the instance's Node to be of that attempt, on that provider.
func (r *run) attemptOn(ctx context.Context, id string, attempt int, on *cluster) {
	r.t.Helper()
	node, err := r.s.consumer.node(ctx, id)
	require.NoError(r.t, err)
	require.Equal(r.t, on.name, node.Labels["liqo.io/remote-cluster-id"])
	require.Equal(r.t, fleet.ObjectName(instanceName(id), attempt), node.Name)
}

// startAgent starts the agent of a provider, with the chart's rights. Without a discovery server in its arguments, what
// it measures goes to the consumer's tenant namespace.
func (s *stack) startAgent(ctx context.Context, provider *cluster, config string, args ...string) *proc.Process {
	s.t.Helper()
	s.install(ctx, provider, "liqo-autoscaler-agent", "--values", filepath.Join(sources(s.t), "deploy", "helm",
		"liqo-autoscaler-agent", "ci", "least-values.yaml"), "--set", "grantSlices=true",
		"--show-only", "templates/rbac.yaml")
	account, name := agentAccount+"-"+provider.name, "agent-"+provider.name
	s.chartAccount(ctx, provider, agentAccount, account)
	file := filepath.Join(s.dir, name+".yaml")
	require.NoError(s.t, os.WriteFile(file, []byte(config), 0o600))
	return s.start(name, append([]string{"agent", "--kubeconfig", filepath.Join(s.accounts, account+".kubeconfig"),
		"--lease-namespace", chartNamespace, "--config", file, "--metrics-listen", "", "--health-listen", ""}, args...)...)
}

// offerBySecret makes an offer of the Secret with a provider's kubeconfig, dearer than all others, and waits until the
// market has it.
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
	newSteps(s.t).until(ctx, "offer in a Secret", time.Minute, func(ctx context.Context) error {
		market, err := s.consumer.kube.CoreV1().ConfigMaps(chartNamespace).Get(ctx, "liqo-autoscaler-market-"+hub,
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		return names(fmt.Sprint(market.Data, market.BinaryData), provider.name)
	})
}
