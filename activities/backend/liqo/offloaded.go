package liqo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

var (
	_ backend.OffloadedPods = (*Backend)(nil)
	_ backend.Volumes       = (*Backend)(nil)
)

// podsPerPage is the maximum number of pods in one answer. One pod may have a hundred kilobytes.
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

// Volumes implements backend.Volumes.
func (b *Backend) Volumes(ctx context.Context) (map[string][]string, error) {
	claims := map[string][]string{}
	for next := ""; ; {
		var page corev1.PersistentVolumeList
		if err := b.local.List(ctx, &page, client.Limit(podsPerPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list volumes: %w", err)
		}
		for n := range page.Items {
			volume := &page.Items[n]
			if provider := boundpod.ProviderOf(volume); provider != "" && volume.Status.Phase == corev1.VolumeBound &&
				volume.Spec.ClaimRef != nil {
				claim := volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name
				claims[provider] = append(claims[provider], claim)
			}
		}
		if next = page.Continue; next == "" {
			return claims, nil
		}
	}
}

// Keep implements backend.Volumes.
func (b *Backend) Keep(ctx context.Context, of fleet.Attempt, kept bool) error {
	return b.mark(ctx, of, "keep", func(node *corev1.Node) bool { return backend.SetKept(node, kept) })
}
