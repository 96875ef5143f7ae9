package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
)

// podsAgent offers the first provider's free amounts to the consumer, in addition to the offers of the file.
const podsAgent = `
provider: provider1
offers:
- consumer: consumer
  hub: lab
  name: measured
  credentials: {secretRef: {namespace: liqo-autoscaler, name: provider1}}
  network: {mode: none}
`

// providersPods are pods of the provider's own users. Each states its requests in a different way.
const providersPods = `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: heavy}
handler: runc
overhead: {podFixed: {cpu: 50m, memory: 40Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: init, namespace: default}
spec:
  nodeName: real-0
  terminationGracePeriodSeconds: 1
  initContainers: [{name: i, image: "localhost/box:1", args: [write, /x, text], resources: {requests: {cpu: 300m, memory: 200Mi}}}]
  containers: [{name: c, image: "localhost/box:1", args: [pause], resources: {requests: {cpu: 100m, memory: 32Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: sidecar, namespace: default}
spec:
  nodeName: real-0
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: s, image: "localhost/box:1", restartPolicy: Always, args: [pause], resources: {requests: {cpu: 150m, memory: 20Mi}}}
  containers: [{name: c, image: "localhost/box:1", args: [pause], resources: {requests: {cpu: 100m, memory: 32Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: overhead, namespace: default}
spec:
  nodeName: real-0
  runtimeClassName: heavy
  overhead: {cpu: 50m, memory: 40Mi}
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "localhost/box:1", args: [pause], resources: {requests: {cpu: 100m, memory: 32Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: done, namespace: default}
spec:
  nodeName: real-0
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "localhost/box:1", args: [exit, "0"], resources: {requests: {cpu: 300m, memory: 32Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: resized, namespace: default}
spec:
  nodeName: real-0
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "localhost/box:1", args: [pause], resources: {requests: {cpu: 100m, memory: 32Mi}}}]
`

// lendable returns the amounts that the provider's agent has published in the consumer's tenant namespace.
func (s *stack) lendable(ctx context.Context, provider *cluster) (corev1.ResourceList, error) {
	m, err := provider.kube.CoreV1().ConfigMaps("liqo-tenant-consumer").Get(ctx, discovery.PublishedName,
		metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var o struct {
		Lendable corev1.ResourceList `json:"lendable"`
	}
	if err := json.Unmarshal([]byte(m.Data[hub]), &o); err != nil || o.Lendable == nil {
		return nil, fmt.Errorf("%s publishes no offer: %v %w", provider.name, m.Data, err)
	}
	return o.Lendable, nil
}

// requested returns the requests that `kubectl describe node` counts on the real node.
func (s *stack) requested(ctx context.Context, kind string) resource.Quantity {
	s.t.Helper()
	out := s.tool(ctx, s.admin(s.providers[0].name), nil, "kubectl", "describe", "node", realNode)
	found := regexp.MustCompile(`(?m)^  ` + kind + ` +(\S+) \(`).FindSubmatch(out)
	require.NotNil(s.t, found, "%s", out)
	return resource.MustParse(string(found[1]))
}

// agentAgainstDescribe checks that the agent offers the node's allocatable amounts minus the requests that `kubectl
// describe node` counts. The requests include a resize that the kubelet refuses. The agent still runs at the end,
// because later parts of the suite need it.
func agentAgainstDescribe(ctx context.Context, t *testing.T, s *stack) {
	first := s.providers[0]
	s.startAgent(ctx, first, podsAgent)
	r := newRun(t, s)
	equal := func(ctx context.Context) error {
		n, err := first.kube.CoreV1().Nodes().Get(ctx, realNode, metav1.GetOptions{})
		if err != nil {
			return err
		}
		free, err := s.lendable(ctx, first)
		if err != nil {
			return err
		}
		for _, kind := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			want := n.Status.Allocatable[kind]
			want.Sub(s.requested(ctx, string(kind)))
			if have := free[kind]; have.Cmp(want) != 0 {
				return fmt.Errorf("%s: the agent offers %s, describe leaves %s", kind, have.String(), want.String())
			}
		}
		return nil
	}
	r.until(ctx, "the empty node", time.Minute, equal)
	s.tool(ctx, s.admin(first.name), []byte(providersPods), "kubectl", "apply", "-f", "-")
	running := func(ctx context.Context) error {
		for name, want := range map[string]corev1.PodPhase{"init": "Running", "sidecar": "Running", "overhead": "Running",
			"done": "Succeeded", "resized": "Running"} {
			p, err := first.kube.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err == nil && p.Status.Phase != want {
				err = fmt.Errorf("pod %s is %s", name, p.Status.Phase)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	r.until(ctx, "pods run", time.Minute, running)
	r.until(ctx, "with pods", 30*time.Second, equal)
	cpu := s.requested(ctx, "cpu")
	require.Equal(t, "800m", cpu.String(), "300m, 250m, 150m and 100m")
	s.tool(ctx, s.admin(first.name), nil, "kubectl", "patch", "pod", "resized", "--subresource", "resize", "-p",
		`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"10"}}}]}}`)
	r.until(ctx, "the resize is refused", time.Minute, func(ctx context.Context) error {
		p, err := first.kube.CoreV1().Pods("default").Get(ctx, "resized", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "PodResizePending" && c.Reason == "Infeasible" {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", p.Status.Conditions)
	})
	r.until(ctx, "with an infeasible resize", 30*time.Second, equal)
	s.tool(ctx, s.admin(first.name), nil, "kubectl", "delete", "pods", "--all", "-n", "default")
	r.until(ctx, "the empty node again", time.Minute, equal)
}
