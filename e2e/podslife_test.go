package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/node"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// takeBack calls the gRPC server to delete a node, in the same way as Cluster Autoscaler.
func (s *stack) takeBack(ctx context.Context, n *corev1.Node) {
	s.t.Helper()
	_, err := s.client.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{Id: group,
		Nodes: []*protos.ExternalGrpcNode{{Name: n.Name, ProviderID: n.Spec.ProviderID}}})
	require.NoError(s.t, err)
}

// gone waits until no object of ours is left, no instance is listed, and the first provider's peering counts as
// removed. While the peering is being removed, a scale-out of the next part would choose this provider last.
func (r *run) gone(ctx context.Context, bound time.Duration) {
	r.t.Helper()
	r.until(ctx, "nothing left", bound, r.empty)
	r.until(ctx, "nothing listed", time.Minute, r.nothingListed)
	r.until(ctx, "the peering is removed", 3*time.Minute, func(ctx context.Context) error {
		phase, err := r.s.peeringPhase(ctx, r.s.providers[0])
		if err == nil && phase != fleet.Absent {
			err = fmt.Errorf("it is %s", phase)
		}
		return err
	})
}

// onNode deploys pods, and waits until their node exists and they are ready. It returns the node and its first pod.
func (r *run) onNode(ctx context.Context, manifests string) (*corev1.Node, *corev1.Pod) {
	r.t.Helper()
	r.s.apply(ctx, manifests)
	ids := r.scaledOut(ctx, 1)
	virtual, err := r.s.consumer.node(ctx, ids[0])
	require.NoError(r.t, err)
	var pod *corev1.Pod
	r.until(ctx, "pod ready", time.Minute, func(ctx context.Context) (err error) {
		pod, err = r.s.readyPod(ctx, "bound")
		return err
	})
	return virtual, pod
}

// jobRetries runs a Job that fails on a full node. Liqo's quota still counts the ended pod, so the provider refuses the
// next pod until the worker deletes the ended one.
func jobRetries(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	keeps := boundPod{name: "keeps-the-node", args: "[pause]"}
	s.apply(ctx, keeps.manifest()+`
apiVersion: batch/v1
kind: Job
metadata: {name: fails}
spec:
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: "localhost/box:1", args: [exit, "7"], resources: {requests: {cpu: 600m, memory: 16Mi}}}
`)
	ids := r.scaledOut(ctx, 1)
	virtual, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	r.until(ctx, "the retry is refused", time.Minute, func(ctx context.Context) error {
		pods, err := s.consumer.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "job-name=fails"})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			if got, err := s.explained(ctx, p.Name); err == nil && string(got.Reason) == string(boundpod.HoldsNoQuota) {
				t.Logf("EXPLAINED %s: %s", p.Name, got.Message)
				return nil
			}
		}
		return fmt.Errorf("none of %d pods is refused", len(pods.Items))
	})
	r.until(ctx, "the Job has ended", 4*time.Minute, func(ctx context.Context) error {
		job, err := s.consumer.kube.BatchV1().Jobs(namespace).Get(ctx, "fails", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue
		}) || job.Status.Failed != 2 {
			return fmt.Errorf("its status is %+v", job.Status)
		}
		return nil
	})
	events, err := s.consumer.kube.CoreV1().Events(metav1.NamespaceDefault).List(ctx,
		metav1.ListOptions{FieldSelector: "reason=" + string(activities.ReasonEndedPodRemoved)})
	require.NoError(t, err)
	require.Len(t, events.Items, 1)
	require.Equal(t, virtual.Name, events.Items[0].InvolvedObject.Name)
	t.Logf("EVENT %s", events.Items[0].Message)
	s.tool(ctx, s.admin("consumer"), nil, "kubectl", "delete", "job/fails", "pod/"+keeps.name, "-n", namespace)
	r.scaledIn(ctx, ids)
}

// graceInADrain checks that a container gets the eight seconds that it needs after SIGTERM, although its node is
// deleted.
func graceInADrain(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	p := boundPod{name: "slow", args: "[grace, 8s]"}
	virtual, _ := r.onNode(ctx, strings.Replace(p.manifest(), "PeriodSeconds: 1", "PeriodSeconds: 15", 1))
	s.takeBack(ctx, virtual)
	began := time.Now()
	r.until(ctx, "its containers have ended", time.Minute, noContainer)
	require.Greater(t, time.Since(began), 8*time.Second, "it was killed")
	require.Less(t, time.Since(began), 15*time.Second, "it used its whole grace period")
	r.gone(ctx, 2*time.Minute)
}

// budgetHolds uses a disruption budget that keeps a pod on a node that CA deletes. `status` names the budget. After
// the budget is deleted, the pod moves to another node.
func budgetHolds(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	virtual, _ := r.onNode(ctx, `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 1, selector: {matchLabels: {app: bound}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kept}
spec:
  selector: {matchLabels: {app: bound}}
  template:
    metadata: {labels: {app: bound}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "localhost/box:1", args: [pause], resources: {requests: {cpu: 100m, memory: 16Mi}}}]
`)
	s.takeBack(ctx, virtual)
	r.until(ctx, "status names the budget", 15*time.Second, func(ctx context.Context) error {
		out, err := s.try(ctx, s.env, nil, s.binary, "status", "--hub", hub, "-o", "wide")
		if err == nil && !strings.Contains(string(out), "is kept by a disruption budget") {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
	s.tool(ctx, s.admin("consumer"), nil, "kubectl", "delete", "pdb", "keep", "-n", namespace)
	moved := newRun(t, s)
	moved.since = r.since
	moved.until(ctx, "the pod runs on another node", 2*time.Minute, func(ctx context.Context) error {
		pod, err := s.readyPod(ctx, "bound")
		if err == nil && pod.Spec.NodeName == virtual.Name {
			err = fmt.Errorf("it is on %s", virtual.Name)
		}
		return err
	})
	require.NoError(t, undeploy(ctx, s.consumer, "kept"))
	r.gone(ctx, 3*time.Minute)
	r.until(ctx, "its containers have ended", 30*time.Second, noContainer)
}

// forcedDrain deletes a pod by force, so that node and slice are removed immediately. On the provider, the container
// runs for its whole grace period. Its requests become free when it has ended.
func forcedDrain(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	p := boundPod{name: "deaf", args: "[stubborn]", more: "resources: {requests: {cpu: 700m, memory: 16Mi}}"}
	virtual, _ := r.onNode(ctx, strings.Replace(p.manifest(), "PeriodSeconds: 1", "PeriodSeconds: 45", 1))
	s.tool(ctx, s.admin("consumer"), nil, "kubectl", "delete", "pod", "deaf", "-n", namespace, "--force",
		"--grace-period=0")
	s.takeBack(ctx, virtual)
	r.until(ctx, "released", 30*time.Second, func(ctx context.Context) error {
		if err := s.providers[0].count(ctx, resourceSlices, 0); err != nil {
			return err
		}
		return r.nothingListed(ctx)
	})
	offers := func(cpu string) func(context.Context) error {
		return func(ctx context.Context) error {
			free, err := s.lendable(ctx, s.providers[0])
			if err == nil && free.Cpu().String() != cpu {
				err = fmt.Errorf("the agent offers %s", free.Cpu())
			}
			return err
		}
	}
	r.until(ctx, "the agent counts the container", 20*time.Second, offers("1"))
	running, err := node.Running(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, running, "the container has ended early, so this part proves nothing")
	r.gone(ctx, 2*time.Minute)
	r.until(ctx, "the container has ended", time.Minute, noContainer)
	r.until(ctx, "its amount is free", 30*time.Second, offers("1700m"))
}

// kubeletStopped stops the provider's kubelet while it runs a pod. The removal of the peering waits, and `offers` shows
// why. The next node is created on the second provider without delay. When the kubelet is back, nothing is left.
func kubeletStopped(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	p := boundPod{name: "orphan", args: "[pause]"}
	virtual, _ := r.onNode(ctx, p.manifest())
	require.Equal(t, s.providers[0].name, virtual.Labels["liqo.io/remote-cluster-id"])
	require.NoError(t, s.node.Freeze())
	t.Cleanup(func() { _ = s.node.Thaw() })
	s.takeBack(ctx, virtual)
	r.until(ctx, "the removal waits", 90*time.Second, func(ctx context.Context) error {
		out, err := s.try(ctx, slices.Concat(s.env, s.admin("consumer")), nil, s.binary, "offers", "--hub", hub, "-o", "wide")
		if err == nil && !strings.Contains(string(out), "waiting for the removal of the previous peering") {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
	r.during(ctx, "it hangs", 35*time.Second, func(context.Context) error { return nil })
	out, err := s.try(ctx, slices.Concat(s.env, s.admin("consumer")), nil, s.binary, "offers", "--hub", hub, "-o", "wide")
	require.NoError(t, err)
	t.Logf("OFFERS\n%s", out)

	next := newRun(t, s)
	next.empty = func(ctx context.Context) error { return clean(ctx, s.providers[1]) }
	require.NoError(t, deploy(ctx, s.consumer, "elsewhere", 1, "800m"))
	ids := next.scaledOut(ctx, 1)
	next.attemptOn(ctx, ids[0], 1, s.providers[1])
	fmt.Printf("STEP %s/from work to a node of the second provider, in all %.2f\n", t.Name(),
		time.Since(next.begun).Seconds())
	require.NoError(t, undeploy(ctx, s.consumer, "elsewhere"))
	next.scaledIn(ctx, ids)

	require.NoError(t, s.node.Thaw())
	r.gone(ctx, 3*time.Minute)
	r.until(ctx, "its containers have ended", time.Minute, noContainer)
}

// everywhereDaemons uses a DaemonSet that tolerates every taint, in a namespace that is not offloaded. It gets a pod on
// the virtual node. Liqo rejects the pod, `explain pod` reports this, and Cluster Autoscaler still removes the node.
func everywhereDaemons(ctx context.Context, t *testing.T, s *stack) {
	const daemons = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: "localhost/box:1", args: [pause], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`
	s.tool(ctx, s.admin("consumer"), []byte(daemons), "kubectl", "apply", "-n", "default", "-f", "-")
	r := newRun(t, s)
	p := boundPod{name: "work", args: "[pause]"}
	s.apply(ctx, p.manifest())
	ids := r.scaledOut(ctx, 1)
	virtual, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	r.until(ctx, "it is explained", time.Minute, func(ctx context.Context) error {
		pods, err := s.consumer.kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=everywhere",
			FieldSelector: "spec.nodeName=" + virtual.Name})
		if err != nil || len(pods.Items) != 1 {
			return fmt.Errorf("%d pods on the node: %w", len(pods.Items), err)
		}
		got, err := s.explainedIn(ctx, "default", pods.Items[0].Name)
		if err == nil && string(got.Reason) != string(boundpod.NotOffloaded) {
			err = fmt.Errorf("%+v", got)
		}
		return err
	})
	s.tool(ctx, s.admin("consumer"), nil, "kubectl", "delete", "pod", p.name, "-n", namespace)
	r.scaledIn(ctx, ids)
	s.tool(ctx, s.admin("consumer"), nil, "kubectl", "delete", "daemonset", "everywhere", "-n", "default")
}
