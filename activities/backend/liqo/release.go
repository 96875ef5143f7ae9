package liqo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// replicatorFinalizers is the prefix of crd-replicator's finalizers, which protect the replicated objects, and the
// kubeconfigs for the replication (Liqo internal/crdReplicator).
const replicatorFinalizers = "crdreplicator.liqo.io/"

// revoked reports whether our Liqo has lost its permissions on the provider. This is the case when the Tenant is
// drained or missing. The Tenant is missing when the provider's administrators have removed it, or a user has run
// `liqoctl unauthenticate`. Liqo then has no permission to remove its replicas on the provider, and crd-replicator
// retries the removal forever (Liqo internal/crdReplicator/reflection/handler.go).
func (p *peering) revoked(ctx context.Context) (bool, error) {
	tenant, err := p.tenant(ctx)
	if err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return tenant.Spec.TenantCondition == authv1beta1.TenantConditionDrained, nil
}

// releaseRevoked releases an object that has been terminating for longer than graces.release, if the peering is
// revoked.
func (p *peering) releaseRevoked(ctx context.Context, object client.Object) error {
	if !terminating(object, p.graces.release) {
		return nil
	}
	if revoked, err := p.revoked(ctx); err != nil || !revoked {
		return err
	}
	return p.release(ctx, object)
}

// release removes crd-replicator's finalizers from an object that is being deleted, because crd-replicator cannot
// remove them. Call it only after revoked has returned true. Before the call, remove the object's copy on the
// provider, if our permissions allow this.
func (p *peering) release(ctx context.Context, object client.Object) error {
	kept := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(finalizer string) bool {
		return strings.HasPrefix(finalizer, replicatorFinalizers)
	})
	if len(kept) == len(object.GetFinalizers()) {
		return nil
	}
	err := nodes.MergePatch(ctx, p.local, object, map[string]any{
		"metadata": map[string]any{"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(),
			"finalizers": kept},
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release %s: %w", object.GetName(), err)
	}
	return nil
}

// terminating reports whether an object has been terminating for longer than the given time.
func terminating(object client.Object, longer time.Duration) bool {
	at := object.GetDeletionTimestamp()
	return at != nil && time.Since(at.Time) > longer
}

// stopwatch measures the time since its first use. It is used only by verbs that are not called in passes.
type stopwatch struct{ began time.Time }

func (s *stopwatch) longerThan(d time.Duration) bool {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return time.Since(s.began) > d
}
