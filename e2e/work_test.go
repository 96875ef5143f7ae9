package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

// namespace is the namespace of the test's pods. It has the same name in every cluster.
const namespace = "demo"

// offload creates the namespace and offloads it in the same way as `liqoctl offload namespace demo
// --namespace-mapping-strategy EnforceSameName --pod-offloading-strategy LocalAndRemote`. It waits until Liqo's pod
// webhook handles the namespace.
func offload(ctx context.Context, s *steps, c *cluster) {
	s.t.Helper()
	_, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = c.liqo.Resource(namespaceOffloadings).Namespace(namespace).Create(ctx,
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": namespaceOffloadings.GroupVersion().String(),
			"kind":       "NamespaceOffloading",
			"metadata":   map[string]any{"name": "offloading"}, // the webhook accepts no other name
			"spec": map[string]any{
				"namespaceMappingStrategy": "EnforceSameName",
				"podOffloadingStrategy":    "LocalAndRemote",
				"clusterSelector":          map[string]any{"nodeSelectorTerms": []any{}},
			},
		}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.until(ctx, "namespace offloaded", 30*time.Second, func(ctx context.Context) error {
		ns, err := c.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if err == nil && ns.Labels["liqo.io/scheduling-enabled"] != "true" {
			err = fmt.Errorf("namespace has labels %v", ns.Labels)
		}
		return err
	})
}

// deploy creates a Deployment whose pods each request this amount of CPU. If selector is not empty, the pods run only
// on nodes with its labels.
func deploy(ctx context.Context, c *cluster, name string, replicas int32, cpu string,
	selector ...map[string]string) error {
	wanted := map[string]string{}
	for _, s := range selector {
		maps.Copy(wanted, s)
	}
	labels := map[string]string{"app": name}
	_, err := c.kube.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					NodeSelector:                  wanted,
					Containers: []corev1.Container{{Name: "work", Image: "work", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
							corev1.ResourceMemory: resource.MustParse("64Mi")},
					}}},
				},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

// undeploy deletes a Deployment and, through the garbage collector, its pods. A missing Deployment is not an error.
func undeploy(ctx context.Context, c *cluster, name string) error {
	err := c.kube.AppsV1().Deployments(namespace).Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// running requires that n pods of a Deployment run on any of the nodes, or on any node when none is named.
func running(ctx context.Context, c *cluster, name string, n int, nodes ...string) error {
	pods, err := c.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return err
	}
	count, seen := 0, ""
	for _, p := range pods.Items {
		seen += fmt.Sprintf(" %s %s on %q %s", p.Name, p.Status.Phase, p.Spec.NodeName, p.Status.Reason)
		if p.Status.Phase == corev1.PodRunning && (len(nodes) == 0 || contains(nodes, p.Spec.NodeName)) {
			count++
		}
	}
	if count != n {
		return fmt.Errorf("%s: %d pods of %s Running on %v, want %d; there are:%s", c.name, count, name, nodes, n, seen)
	}
	return nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// remotePods requires that n pods of the namespace run on a provider.
func remotePods(ctx context.Context, c *cluster, n int) error {
	pods, err := c.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	count := 0
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning {
			count++
		}
	}
	if count != n {
		return fmt.Errorf("%s: %d pods Running in %s, want %d of %d", c.name, count, namespace, n, len(pods.Items))
	}
	return nil
}
