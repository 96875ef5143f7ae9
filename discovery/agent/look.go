package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Look returns the present state of the cluster, for commands. It does not read the record of grants; the amounts in
// the status of a slice count as granted.
func Look(ctx context.Context, kube kubernetes.Interface, objects dynamic.Interface) (w World, err error) {
	_, err = lister(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return kube.CoreV1().Nodes().List(ctx, o)
	}).each(ctx, podsPerPage, func(o runtime.Object) error {
		w.Nodes = append(w.Nodes, o.(*corev1.Node))
		return nil
	})
	if err != nil {
		return w, fmt.Errorf("list Nodes: %w", err)
	}
	_, err = lister(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
	}).each(ctx, lookPods, func(o runtime.Object) error {
		kept, err := trim(o)
		if err == nil {
			w.Pods = append(w.Pods, kept.(*corev1.Pod))
		}
		return err
	})
	if err != nil {
		return w, fmt.Errorf("list Pods: %w", err)
	}
	g := granter{objects: objects}
	tenants, err := g.readTenants(ctx)
	if err != nil {
		return w, err
	}
	if w.Slices, err = g.readSlices(ctx); err != nil {
		return w, err
	}
	settle(w.Slices, tenants, nil)
	return w, nil
}

// lookPods is the number of pods that Look lists per page. It is larger than podsPerPage, because a command may use
// more memory than the agent.
const lookPods = 500
