package nodewatch_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
)

// TestLabDeletedNode runs on real Kubernetes and Liqo. LIQO_AUTOSCALER_LAB names the folder of the running lab. The
// test deletes the Node of a live instance three times with kubectl. Within seconds the Node is stamped and Ready
// again, and it never counts as lost.
func TestLabDeletedNode(t *testing.T) {
	root := os.Getenv("LIQO_AUTOSCALER_LAB")
	if root == "" {
		t.Skip("needs real Liqo: LIQO_AUTOSCALER_LAB is the folder of a running lab")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(root, "consumer.kubeconfig"))
	require.NoError(t, err)
	b, err := liqo.New(liqo.Config{Consumer: config})
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	nodes := kube.CoreV1().Nodes()

	p := fleet.Provider{ID: "provider1", Credentials: fleet.Credentials{KubeconfigFile: filepath.Join(root,
		"provider1.kubeconfig")}, Network: &fleet.Network{Mode: fleet.NetworkNone}}
	a := fleet.Attempt{Group: "watch", Instance: fleet.InstanceName("watch", fleet.NewEpoch(time.Now()), 1), Number: 1,
		Provider: p}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		require.NoError(t, b.Return(ctx, a, nil))
		require.NoError(t, b.RemovePeering(ctx, p, nil))
	})
	require.NoError(t, b.Establish(ctx, p, nil))
	shape := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("20"),
	}
	_, err = b.Join(ctx, backend.NodeSpec{Attempt: a, Shape: shape}, nil)
	require.NoError(t, err)

	s := &scene{t: t, groups: &groups{group: a.Group}}
	s.run(func(o *nodewatch.Options) { o.Watcher, o.RetryMax = b, time.Second })
	s.told(a.Instance, fleet.Registered)
	for range 3 {
		node, err := nodes.Get(ctx, a.ObjectName(), metav1.GetOptions{})
		require.NoError(t, err)
		deleted := node.UID
		began := time.Now()
		require.NoError(t, nodes.Delete(ctx, a.ObjectName(), metav1.DeleteOptions{}))
		since := map[string]time.Duration{}
		note := func(what string, is bool) bool {
			if _, known := since[what]; is && !known {
				since[what] = time.Since(began).Round(10 * time.Millisecond)
			}
			return is
		}
		require.Eventually(t, func() bool {
			node, err := nodes.Get(ctx, a.ObjectName(), metav1.GetOptions{})
			there := note("registered", err == nil && node.UID != deleted)
			stamped := there && note("stamped", node.Spec.ProviderID == a.InstanceID())
			note("starting", there && starting(node))
			note("stamped while starting", stamped && starting(node))
			return stamped && note("ready", ready(node))
		}, 2*time.Minute, 20*time.Millisecond)
		t.Logf("node deleted: registered again after %s, with the taint %s, stamped %s, Ready %s", since["registered"],
			since["starting"], since["stamped"], since["ready"])
		require.NotContains(t, since, "stamped while starting")
		require.Less(t, since["stamped"]-since["registered"], 5*time.Second)
	}
	require.NotContains(t, s.groups.of(a.Instance), fleet.Lost)
	t.Logf("facts: %q", s.groups.of(a.Instance))
}

func starting(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
}

func ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
