package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
)

// boundPod is a pod that is bound to its virtual node and does not run. It also contains the report that the test
// expects.
type boundPod struct {
	name, args, more string // more lists fields of its container
	ofPod            string // fields of its spec
	verdict          string
	says             string
}

// boundPods contains a pod for each reason for which a bound pod does not run, and one pod that runs.
var boundPods = []boundPod{
	{name: "fine", args: "[stubborn]", verdict: string(explain.Scheduled), says: "it has a node"},
	{name: "crash", args: `[exit, "3"]`, verdict: string(boundpod.Restarting), says: "exit code 3"},
	{name: "oom", args: "[eat]", more: "resources: {requests: {cpu: 90m, memory: 32Mi}, limits: {memory: 32Mi}}",
		verdict: string(boundpod.Restarting), says: "exit code 137, OOMKilled"},
	{name: "noimage", more: "image: localhost/none:1", verdict: string(boundpod.NotStarting), says: "localhost/none:1"},
	{name: "nocommand", more: "command: [/none]", verdict: string(boundpod.Restarting), says: "exit code 128, StartError"},
	{name: "notalive", args: "[stubborn]", more: `livenessProbe: {exec: {command: [/box, exit, "1"]}, periodSeconds: 1, ` +
		"failureThreshold: 1}", verdict: string(boundpod.Restarting), says: "exit code 137"},
	{name: "deadline", args: "[stubborn]", ofPod: "activeDeadlineSeconds: 5", verdict: string(explain.Finished),
		says: "DeadlineExceeded"},
	{name: "privileged", args: "[stubborn]", more: "securityContext: {privileged: true}",
		verdict: string(boundpod.RefusedByProvider), says: "no container of a consumer is privileged"},
	{name: "hostpath", args: "[stubborn]", more: "volumeMounts: [{name: h, mountPath: /h}]",
		ofPod: "volumes: [{name: h, hostPath: {path: /run}}]", verdict: string(boundpod.RefusedByProvider),
		says: "mounts no path of the node"},
}

// manifest returns the pod's manifest. The image or the resources in p.more replace the default.
func (p boundPod) manifest() string {
	image, resources := "image: localhost/box:1", "resources: {requests: {cpu: 90m, memory: 16Mi}}"
	fields := []string{"name: main", "imagePullPolicy: IfNotPresent"}
	for _, f := range []string{image, resources} {
		key := f[:5]
		if len(p.more) < 5 || p.more[:5] != key {
			fields = append(fields, f)
		}
	}
	if p.more != "" {
		fields = append(fields, p.more)
	}
	if p.args != "" {
		fields = append(fields, "args: "+p.args)
	}
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + p.name + ", labels: {app: bound}}\nspec:\n" +
		"  terminationGracePeriodSeconds: 1\n"
	if p.ofPod != "" {
		text += "  " + p.ofPod + "\n"
	}
	text += "  containers:\n"
	for n, f := range fields {
		text += map[bool]string{true: "  - ", false: "    "}[n == 0] + f + "\n"
	}
	return text + "---\n"
}

// explained returns the output of `liqo-autoscaler explain pod` for a pod.
func (s *stack) explained(ctx context.Context, name string) (p explain.Pod, err error) {
	return s.explainedIn(ctx, namespace, name)
}

func (s *stack) explainedIn(ctx context.Context, namespace, name string) (p explain.Pod, err error) {
	env := slices.Concat(s.env, s.admin("consumer"))
	out, err := s.try(ctx, env, nil, s.binary, "explain", "pod", namespace+"/"+name, "--hub", hub, "-o", "json")
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(out, &p)
}

// boundPodsReported covers pods that do not run on the provider. The consumer's pod shows the state of the provider's
// pod, and `explain pod` names the reason. No pod of a consumer has administrator permissions on the provider's node.
func boundPodsReported(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	manifests := ""
	for _, p := range boundPods {
		manifests += p.manifest()
	}
	s.apply(ctx, manifests)
	ids := r.scaledOut(ctx, 1)
	for _, p := range boundPods {
		r.until(ctx, p.name+" is explained", time.Minute, func(ctx context.Context) error {
			got, err := s.explained(ctx, p.name)
			if err == nil && (string(got.Reason) != p.verdict || !strings.Contains(got.Message, p.says)) {
				err = fmt.Errorf("%+v", got)
			}
			return err
		})
		got, err := s.explained(ctx, p.name)
		require.NoError(t, err)
		require.Equal(t, s.providers[0].name, got.Provider)
		t.Logf("EXPLAINED %s: %s: %s (last event on the provider: %s)", p.name, got.Reason, got.Message, got.LastEvent)
	}
	t.Run("StatesAreReported", func(t *testing.T) { statesAreReported(ctx, t, s) })

	// A pod of the provider's own users takes so much CPU that the provider cannot run all pods that fit on the
	// virtual node.
	first := s.providers[0]
	_, err := first.kube.CoreV1().Pods("default").Create(ctx, manifest[corev1.Pod](t, `
metadata: {name: hog}
spec:
  nodeName: real-0
  terminationGracePeriodSeconds: 1
  containers: [{name: hog, image: "localhost/box:1", args: [stubborn], resources: {requests: {cpu: 1100m}}}]
`), metav1.CreateOptions{})
	require.NoError(t, err)
	late := boundPod{name: "late", args: "[stubborn]", more: "resources: {requests: {cpu: 200m, memory: 16Mi}}"}
	s.apply(ctx, late.manifest())
	r.until(ctx, "pending on the provider", time.Minute, func(ctx context.Context) error {
		got, err := s.explained(ctx, "late")
		if err == nil && (string(got.Reason) != string(boundpod.PendingOnProvider) ||
			!strings.Contains(got.Message, "Insufficient cpu")) {
			err = fmt.Errorf("%+v", got)
		}
		return err
	})
	t.Run("StatusShowsThem", func(t *testing.T) { statusShowsThem(ctx, t, s) })

	none := int64(0)
	require.NoError(t, first.kube.CoreV1().Pods("default").Delete(ctx, "hog",
		metav1.DeleteOptions{GracePeriodSeconds: &none}))
	s.tool(ctx, s.admin("consumer"), nil, "kubectl", "delete", "pods", "--all", "-n", namespace, "--wait=false")
	r.scaledIn(ctx, ids)
	r.until(ctx, "no container runs", 30*time.Second, noContainer)
}

// statusShowsThem waits for two rounds of the observer. `status` then shows how many pods have each verdict, and on
// which provider.
func statusShowsThem(ctx context.Context, t *testing.T, s *stack) {
	newSteps(t).until(ctx, "status shows them", 3*time.Minute, func(ctx context.Context) error {
		out, err := s.try(ctx, slices.Concat(s.env, s.admin("consumer")), nil, s.binary, "status", "--hub", hub)
		for _, word := range []string{"PODS ON", "PodsDoNotStart", "NotStarting", "Restarting", "RefusedByProvider"} {
			if err == nil && !strings.Contains(string(out), word) {
				err = fmt.Errorf("%s is not in:\n%s", word, out)
			}
		}
		return err
	})
	out, err := s.try(ctx, slices.Concat(s.env, s.admin("consumer")), nil, s.binary, "status", "--hub", hub)
	require.NoError(t, err)
	t.Logf("STATUS\n%s", out)
}

// statesAreReported requires that the containers have the same states in the consumer's pod and in the provider's
// pod.
func statesAreReported(ctx context.Context, t *testing.T, s *stack) {
	for _, p := range boundPods {
		if p.verdict == string(boundpod.RefusedByProvider) {
			_, err := s.providers[0].kube.CoreV1().Pods(namespace).Get(ctx, p.name, metav1.GetOptions{})
			require.Error(t, err, "%s is on the provider", p.name)
			continue
		}
		newSteps(t).until(ctx, p.name+" is the same on both sides", time.Minute, func(ctx context.Context) error {
			here, err := s.consumer.kube.CoreV1().Pods(namespace).Get(ctx, p.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			there, err := s.providers[0].kube.CoreV1().Pods(namespace).Get(ctx, p.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if a, b := states(here), states(there); a != b {
				return fmt.Errorf("here %s, there %s", a, b)
			}
			return nil
		})
	}
}

// states returns the phase of a pod and the states of its containers.
func states(p *corev1.Pod) string {
	text := string(p.Status.Phase) + " " + p.Status.Reason
	for _, c := range p.Status.ContainerStatuses {
		state, _ := json.Marshal([]any{c.State, c.LastTerminationState, c.RestartCount, c.Ready})
		text += " " + c.Name + " " + string(state)
	}
	return text
}
