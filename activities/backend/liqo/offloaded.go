package liqo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
)

var _ backend.OffloadedPods = (*Backend)(nil)

// podsPerPage bounds the pods of one answer: a pod may have a hundred kilobytes.
const podsPerPage = 250

// OffloadedPods implements backend.OffloadedPods.
func (b *Backend) OffloadedPods(ctx context.Context, visit func(*corev1.Pod)) error {
	offloaded := client.MatchingLabels{boundpod.LabelOffloaded: boundpod.ValueOffloaded}
	for next := ""; ; {
		var page corev1.PodList
		if err := b.local.List(ctx, &page, offloaded, client.Limit(podsPerPage), client.Continue(next)); err != nil {
			return fmt.Errorf("list offloaded pods: %w", err)
		}
		for n := range page.Items {
			visit(&page.Items[n])
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// RemoveEndedPod implements backend.OffloadedPods.
func (b *Backend) RemoveEndedPod(ctx context.Context, pod *corev1.Pod) error {
	is := client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}
	if err := client.IgnoreNotFound(b.local.Delete(ctx, pod, is)); err != nil {
		return fmt.Errorf("delete ended pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
