package lab_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// TestPeering runs Liqo alone, without our programs, through the life of a virtual node with Liqo's own liqoctl. It
// peers, waits for a Ready node, kills and restarts the virtual kubelet, runs a pod on the provider, unpeers, and waits
// until the node is gone. It uses the versions in the environment.
func TestPeering(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes and Liqo")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	l := lab.ForTest(ctx, t, lab.Options{Providers: 1})
	provider := l.Providers[0]
	consumer := client(t, l, lab.Consumer)

	liqoctl(ctx, t, l, "peer", "--remote-kubeconfig", l.Kubeconfig(provider), "--networking-disabled",
		"--cpu", "2", "--memory", "4Gi", "--pods", "10")
	require.Eventually(t, func() bool { return ready(ctx, consumer, provider) }, time.Minute, 200*time.Millisecond)

	for _, name := range []string{lab.VirtualKubelet(provider), lab.LiqoIPAM, lab.LiqoManager, lab.LiqoCRDReplicator} {
		process := lab.Consumer + "-" + name
		first, err := l.Pid(process)
		require.NoError(t, err)
		require.NoError(t, l.Signal(lab.Consumer, name, syscall.SIGKILL))
		require.Eventually(t, func() bool {
			again, err := l.Pid(process)
			return err == nil && again != first
		}, 2*time.Minute, 100*time.Millisecond, "a kubelet starts a crashed container again: %s", name)
	}

	offloaded(ctx, t, l, consumer)

	liqoctl(ctx, t, l, "unpeer", "--remote-kubeconfig", l.Kubeconfig(provider))
	require.Eventually(t, func() bool {
		_, err := consumer.CoreV1().Nodes().Get(ctx, provider, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, time.Minute, 200*time.Millisecond)
}

// offloaded runs a pod in an offloaded namespace on the provider, and removes both.
func offloaded(ctx context.Context, t *testing.T, l *lab.Lab, consumer kubernetes.Interface) {
	t.Helper()
	_, err := consumer.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	liqoctl(ctx, t, l, "offload", "namespace", "demo", "--pod-offloading-strategy", "Remote",
		"--namespace-mapping-strategy", "EnforceSameName")
	_, err = consumer.CoreV1().Pods("demo").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	running := func(c kubernetes.Interface) bool {
		pod, err := c.CoreV1().Pods("demo").Get(ctx, "web", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	}
	require.Eventually(t, func() bool { return running(consumer) }, time.Minute, 200*time.Millisecond)
	require.True(t, running(client(t, l, l.Providers[0])), "its shadow runs on the provider")
	liqoctl(ctx, t, l, "unoffload", "namespace", "demo")
	require.NoError(t, consumer.CoreV1().Pods("demo").Delete(ctx, "web", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := consumer.CoreV1().Pods("demo").Get(ctx, "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, time.Minute, 200*time.Millisecond)
}

// liqoctl runs the lab's liqoctl, of the version under test, and prints its duration.
func liqoctl(ctx context.Context, t *testing.T, l *lab.Lab, args ...string) {
	t.Helper()
	liqoctlAt(ctx, t, l, lab.Consumer, args...)
}

// liqoctlAt runs liqoctl as a user of that cluster.
func liqoctlAt(ctx context.Context, t *testing.T, l *lab.Lab, cluster string, args ...string) {
	t.Helper()
	began := time.Now()
	cmd := exec.CommandContext(ctx, filepath.Join(l.Bin, "liqo", "liqoctl"), append(args, "--kubeconfig",
		l.Kubeconfig(cluster), "--skip-confirm")...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "liqoctl %s: %s", strings.Join(args, " "), out)
	step(l, args[0], began)
}

func client(t *testing.T, l *lab.Lab, cluster string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig(cluster))
	require.NoError(t, err)
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return c
}

func ready(ctx context.Context, c kubernetes.Interface, name string) bool {
	node, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
