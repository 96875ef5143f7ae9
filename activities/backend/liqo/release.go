package liqo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replicatorFinalizers is the prefix of the finalizers by which crd-replicator holds what it has replicated, and the
// kubeconfigs it does that by (Liqo internal/crdReplicator).
const replicatorFinalizers = "crdreplicator.liqo.io/"

// revoked tells whether the provider has no Tenant of ours: its people took it away, or somebody removed the peering by
// `liqoctl unauthenticate`. Liqo may do nothing there then, not even remove what it has replicated, and crd-replicator
// retries that for ever (Liqo internal/crdReplicator/reflection/handler.go).
func (p *peering) revoked(ctx context.Context) (bool, error) {
	_, err := p.tenant(ctx)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// release takes crd-replicator's finalizers off an object that is being deleted, in place of a crd-replicator that cannot.
// Only after revoked, and only when nothing of the object is left on the provider that we could remove.
func (p *peering) release(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() == nil {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(finalizer string) bool {
		return strings.HasPrefix(finalizer, replicatorFinalizers)
	})
	if len(kept) == len(object.GetFinalizers()) {
		return nil
	}
	err := mergePatch(ctx, p.local, object, map[string]any{
		"metadata": map[string]any{"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": kept},
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release %s: %w", object.GetName(), err)
	}
	return nil
}

// since is how long something has lasted, from the first time it was asked.
type since struct{ began time.Time }

func (s *since) longerThan(d time.Duration) bool {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return time.Since(s.began) > d
}
