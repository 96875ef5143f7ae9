package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// growing is the config of the agent of a provider whose own autoscaler adds one node of four CPUs.
const growing = `
provider: provider1
growsTo: {cpu: "4", memory: 8Gi, ephemeral-storage: 50Gi, pods: "110"}
growsNode: {cpu: "4", memory: 8Gi, ephemeral-storage: 50Gi, pods: "110"}
offers:
- consumer: consumer
  hub: lab
  name: provider1
  credentials: {secretRef: {namespace: liqo-autoscaler, name: provider1}}
  price: 1
`

// measuredOffer uses the amounts that the first provider's agent publishes. The second provider is more expensive.
const measuredOffer = `
offers:
- name: second
  credentials: {secretRef: {namespace: liqo-autoscaler, name: provider2}}
  lendable: {cpu: "8", memory: 16Gi, pods: "100", ephemeral-storage: 100Gi}
  price: 2
  lingerSeconds: 0
  network: {mode: none}
- name: provider1
  credentials: {kubeconfigFile: $ACCOUNTS/provider1.kubeconfig}
  lendable: measured
  class: liqo-autoscaler
  lingerSeconds: 0
  network: {mode: none}
`

// TestGrows is a part of the suite "decides". The first provider has no node until one of its pods is pending. It
// offers the size to which it can grow, and the agent grants a slice of that size. The pods run when the node exists.
func TestGrows(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 13*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "grows", groups, measuredOffer, withMarket)
	first := s.providers[0]
	require.NoError(t, first.setSchedulable(ctx, false))
	s.startAgent(ctx, first, growing, "--grant-slices")
	offload(ctx, newSteps(t), s.consumer)
	r := newRun(t, s)
	offers := func(cpu string) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := first.kube.CoreV1().ConfigMaps("liqo-tenant-"+lab.Consumer).Get(ctx, discovery.PublishedName,
				metav1.GetOptions{})
			if err != nil {
				return err
			}
			return names(got.Data[hub], `"cpu":"`+cpu+`"`)
		}
	}
	r.until(ctx, "offer published", time.Minute, offers("4"))
	s.inMarket(ctx, first)

	r = newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	there := r.scaledOut(ctx, 1)
	r.attemptOn(ctx, there[0], 1, first)
	require.NoError(t, offers("4")(ctx), "the consumer itself subtracts what it has")
	r.until(ctx, "a pod pending on the provider", time.Minute, first.podPends)
	require.NoError(t, first.setSchedulable(ctx, true)) // the provider's autoscaler adds a node
	r.until(ctx, "pods running", 2*time.Minute, func(ctx context.Context) error {
		return running(ctx, s.consumer, "work", 2)
	})
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, there)
}

// setSchedulable makes the cluster's node schedulable or unschedulable. A node that accepts no pods does not count
// for the agent.
func (c *cluster) setSchedulable(ctx context.Context, takes bool) error {
	nodes, err := c.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, !takes)
	for i := range nodes.Items {
		_, err := c.kube.CoreV1().Nodes().Patch(ctx, nodes.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// podPends returns nil when the cluster's scheduler reports a pod that Liqo has created as unschedulable.
func (c *cluster) podPends(ctx context.Context) error {
	pods, err := c.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "offloading.liqo.io/origin"})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		for _, condition := range pods.Items[i].Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return nil
			}
		}
	}
	return errors.New("none is")
}
