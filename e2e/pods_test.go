package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/node"
)

// realNode is the name of the first provider's node that runs containers.
const realNode = "real-0"

// podsGroups have short budgets. Their nodes are small, because the real node has two CPUs at most.
var podsGroups = strings.Replace(groups, `shape: {cpu: "2", memory: 4Gi`, `shape: {cpu: "1", memory: 1Gi`, 1) +
	"  budgets: {drain: 20s, podStart: 1m}\n"

// TestPods is the suite "pods": pods on a provider whose kubelet runs containers. It needs its own cgroups and mounts
// (a room, see e2e/lab), which `make e2e SUITE=pods` creates.
func TestPods(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 28*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "pods", podsGroups, offers, withKubelet, withMarket)
	s.startNode(ctx)
	offload(ctx, newSteps(t), s.consumer)
	s.fillConsumer(ctx)
	runParts(ctx, t, s, []part{
		{"Runs", podsRun},
		{"BoundPods", boundPodsReported},
		{"JobRetries", jobRetries},
		{"GraceInADrain", graceInADrain},
		{"BudgetHolds", budgetHolds},
		{"EverywhereDaemons", everywhereDaemons},
		{"Agent", agentAgainstDescribe},
		{"ForcedDrain", forcedDrain},
		{"KubeletStopped", kubeletStopped},
	})
}

// startNode starts the first provider's real node, and keeps pods away from its other node.
func (s *stack) startNode(ctx context.Context) {
	s.t.Helper()
	first := s.providers[0]
	n, err := node.Start(ctx, node.Options{Name: realNode, Kubeconfig: s.lab.Kubeconfig(first.name), Bin: s.lab.Bin,
		Logs: s.dir, IP: "192.168.201.2", Pods: "10.201.0.0/16"})
	require.NoError(s.t, err)
	s.node = n
	timing := newSteps(s.t)
	timing.until(ctx, "real node ready", time.Minute, func(ctx context.Context) error {
		n, err := first.kube.CoreV1().Nodes().Get(ctx, realNode, metav1.GetOptions{})
		if err == nil && !isReady(n) {
			err = errors.New("it is not Ready")
		}
		return err
	})
	_, err = first.kube.CoreV1().Nodes().Patch(ctx, "plain-0", types.MergePatchType,
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// fillConsumer fills the consumer's own node, so that each pod needs a virtual node.
func (s *stack) fillConsumer(ctx context.Context) {
	s.t.Helper()
	_, err := s.consumer.kube.CoreV1().Pods("default").Create(ctx, manifest[corev1.Pod](s.t, `
metadata: {name: filler}
spec:
  nodeName: plain-0
  containers: [{name: filler, image: filler, resources: {requests: {cpu: 950m}}}]
`), metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// podsRun runs a Deployment on the provider's kubelet. Its pods have an init container, a sidecar, a probe and data
// of the consumer. Logs, exec and port-forward work from the consumer.
func podsRun(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	s.apply(ctx, podsWeb)
	ids := r.scaledOut(ctx, 1)
	virtual, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	r.until(ctx, "containers ready", time.Minute, func(ctx context.Context) error {
		_, err := s.readyPod(ctx, "web")
		return err
	})
	fmt.Printf("STEP %s/from work to containers ready, in all %.2f\n", t.Name(), time.Since(r.begun).Seconds())
	pod, err := s.readyPod(ctx, "web")
	require.NoError(t, err)
	require.Equal(t, virtual.Name, pod.Spec.NodeName)
	running, err := node.Running(ctx)
	require.NoError(t, err)
	require.Equal(t, 2, running, "the sidecar and the server")

	kubectl := func(args ...string) string {
		return string(s.tool(ctx, s.admin("consumer"), nil, "kubectl", append([]string{"-n", namespace}, args...)...))
	}
	require.Contains(t, kubectl("logs", pod.Name, "-c", "side"), "/conf/motd: from the consumer's ConfigMap")
	require.Contains(t, kubectl("logs", pod.Name, "-c", "side"), "/secret/pass: s3cret")
	require.Equal(t, "up\n", kubectl("logs", pod.Name, "-c", "init"))
	kubectl("exec", pod.Name, "-c", "web", "--", "/box", "write", "/scratch/exec.txt", "by exec")
	require.Equal(t, "made by the init container", s.forwarded(ctx, t, pod.Name, "/index.html"))
	require.Equal(t, "by exec", s.forwarded(ctx, t, pod.Name, "/exec.txt"))

	require.NoError(t, undeploy(ctx, s.consumer, "web"))
	r.scaledIn(ctx, ids)
	r.until(ctx, "no container runs", 30*time.Second, noContainer)
}

// noContainer returns an error as long as a container runs on the real node.
func noContainer(ctx context.Context) error {
	running, err := node.Running(ctx)
	if err == nil && running > 0 {
		err = fmt.Errorf("%d containers run", running)
	}
	return err
}
