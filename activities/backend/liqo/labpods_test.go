package liqo_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
)

const (
	podNamespace = group + "-pods"
	podLabel     = "contract.example.org/pod" // the label with a pod's name in the suite
	podFinalizer = "contract.example.org/dead"
)

// offload makes an offloaded namespace for pods, until the end of the test.
func (l *lab) offload(t *testing.T) {
	t.Helper()
	c := l.clusters[consumer]
	_, err := c.kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: podNamespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(l.letGo(ctx), c.removeNamespace(ctx, podNamespace)); err != nil {
			t.Errorf("remove namespace %s: %v", podNamespace, err)
		}
	})
	_, err = c.any.Resource(offloading("namespaceoffloadings")).Namespace(podNamespace).Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "offloading.liqo.io/v1beta1",
			"kind":       "NamespaceOffloading",
			"metadata":   map[string]any{"name": "offloading"}, // Liqo's webhook accepts no other name
			"spec": map[string]any{
				"namespaceMappingStrategy": "EnforceSameName",
				"podOffloadingStrategy":    "LocalAndRemote",
				"clusterSelector":          map[string]any{"nodeSelectorTerms": []any{}}, // or Liqo cannot add its finalizer
			},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, poll(t.Context(), func(ctx context.Context) (bool, error) {
		ns, err := c.kube.CoreV1().Namespaces().Get(ctx, podNamespace, metav1.GetOptions{})
		return err == nil && ns.Labels["liqo.io/scheduling-enabled"] == "true", err
	}))
}

// letGo removes the finalizers of the suite's pods.
func (l *lab) letGo(ctx context.Context) error {
	kube := l.clusters[consumer].kube.CoreV1().Pods(podNamespace)
	list, err := kube.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if !slices.Contains(list.Items[i].Finalizers, podFinalizer) {
			continue
		}
		if _, err := kube.Patch(ctx, list.Items[i].Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{}); ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) removeNamespace(ctx context.Context, name string) error {
	if err := ignoreNotFound(c.kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
		return err
	}
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := c.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
	if err == nil && c.grant != nil {
		err = c.grant(ctx, c)
	}
	return err
}

func (l *lab) pods(ctx context.Context, node string) ([]string, error) {
	list, err := l.clusters[consumer].kube.CoreV1().Pods(podNamespace).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Labels[podLabel])
	}
	return names, nil
}

// putPod creates a pod on a node and waits until the pod runs there. For a pod of a DaemonSet it waits only until the
// pod exists.
func (l *lab) putPod(ctx context.Context, node string, pod backendtest.Pod) error {
	kube := l.clusters[consumer].kube
	meta := metav1.ObjectMeta{Name: pod.Name, Labels: map[string]string{podLabel: pod.Name}}
	if pod.Held {
		meta.Finalizers = []string{podFinalizer}
	}
	spec := corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "c", Image: "none"}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
	var err error
	if pod.DaemonSet {
		spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		_, err = kube.AppsV1().DaemonSets(podNamespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta,
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: spec},
			}}, metav1.CreateOptions{})
	} else {
		spec.NodeName, spec.TerminationGracePeriodSeconds = node, new(int64)
		_, err = kube.CoreV1().Pods(podNamespace).Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: spec},
			metav1.CreateOptions{})
	}
	if err == nil && pod.Protected {
		one := intstr.FromInt32(1)
		_, err = kube.PolicyV1().PodDisruptionBudgets(podNamespace).Create(ctx,
			&policyv1.PodDisruptionBudget{ObjectMeta: meta,
				Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one,
					Selector: &metav1.LabelSelector{MatchLabels: meta.Labels}}}, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		list, err := kube.CoreV1().Pods(podNamespace).List(ctx, metav1.ListOptions{LabelSelector: podLabel + "=" + pod.Name,
			FieldSelector: "spec.nodeName=" + node})
		if err != nil || len(list.Items) != 1 {
			return false, err
		}
		return pod.DaemonSet || list.Items[0].Status.Phase == corev1.PodRunning, nil
	})
}
