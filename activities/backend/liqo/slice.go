package liqo

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// ensureSlice finds the attempt's slice or makes it. The slice intentionally lacks the annotation that makes Liqo
// create the virtual node: Join creates the virtual node, with labels and taints.
func (j *join) ensureSlice(ctx context.Context) (*authv1beta1.ResourceSlice, error) {
	slice, err := j.slice(ctx)
	if apierrors.IsNotFound(err) && j.sliced {
		return nil, errorf(backend.ErrConflict, "ResourceSlice %s was removed by another program or person", j.name())
	}
	if apierrors.IsNotFound(err) {
		return j.createSlice(ctx)
	}
	if err != nil {
		return nil, err
	}
	j.sliced = true
	if slice.DeletionTimestamp != nil {
		return nil, errorf(backend.ErrConflict, "ResourceSlice %s/%s is being removed", slice.Namespace, slice.Name)
	}
	if slice.Labels[consts.ReplicationDestinationLabel] != j.Provider.ID {
		return nil, errorf(backend.ErrConflict, "ResourceSlice %s/%s is on provider %s", slice.Namespace, slice.Name,
			slice.Labels[consts.ReplicationDestinationLabel])
	}
	return slice, nil
}

// createSlice makes the slice with only the data that the provider needs, because crd-replicator copies labels and
// annotations to the provider (Liqo internal/crdReplicator/reflection/handler.go). The data for recovery is on the
// virtual node.
func (j *join) createSlice(ctx context.Context) (*authv1beta1.ResourceSlice, error) {
	if err := j.checkOnlySlice(ctx); err != nil {
		return nil, err
	}
	slice := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:      j.name(),
			Namespace: j.localNS,
			Labels: with(j.labels(), j.signed(), outgoing(j.Provider.ID),
				map[string]string{consts.RemoteClusterID: j.Provider.ID}),
		},
		Spec: authv1beta1.ResourceSliceSpec{
			Class: cmp.Or(authv1beta1.ResourceSliceClass(j.spec.Class),
				authv1beta1.ResourceSliceClassDefault),
			ProviderClusterID: ptr.To(liqov1beta1.ClusterID(j.Provider.ID)),
			Resources:         j.spec.Shape,
		},
	}
	err := j.local.Create(ctx, slice)
	if nameTaken(err) {
		if late, err := j.slice(ctx); !apierrors.IsNotFound(err) {
			return late, err // the slice of an earlier Join, whose request arrived late, or of another worker
		}
		return nil, errorf(backend.ErrConflict, "a ResourceSlice %s exists and is not this attempt's", slice.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("create slice %s: %w", slice.Name, err)
	}
	j.sliced = true
	return slice, nil
}

// nameTaken reports whether the API server or Liqo's webhook refused an object because its name is taken.
func nameTaken(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "already exists")
}

// authenticated reports done when the provider has authenticated the slice. Liqo reports Denied for an invalid
// request, but also while its signer is slow and may still succeed (Liqo remoteresourceslice_controller.go).
// Therefore authenticated treats a denial as final only after DenyAfter.
func (j *join) authenticated(ctx context.Context) (bool, string, error) {
	slice, err := j.ensureSlice(ctx)
	if err != nil {
		return false, "", err
	}
	condition := authentication.GetCondition(slice, authv1beta1.ResourceSliceConditionTypeAuthentication)
	switch {
	case condition == nil && j.allowedAt.IsZero():
		err := j.allow(ctx, slice)
		return false, "", err
	case condition == nil:
		return j.unanswered(ctx, slice)
	case condition.Status == authv1beta1.ResourceSliceConditionAccepted:
		j.granting, j.fresh = slice, true
		return true, "", nil
	case j.denied.longerThan(j.config.DenyAfter):
		return false, "", j.refused(ctx, denial(slice, condition))
	default:
		return false, denial(slice, condition), nil
	}
}

// unanswered returns the message for a slice that the provider has not answered. Once the answer is overdue, it
// searches for the reason.
func (j *join) unanswered(ctx context.Context, slice *authv1beta1.ResourceSlice) (bool, string, error) {
	unanswered := fmt.Sprintf("the provider has not answered ResourceSlice %s/%s yet", slice.Namespace, slice.Name)
	if !j.waiting.longerThan(min(diagnoseAfter, j.graces.answer)) {
		return false, unanswered, nil
	}
	status, message, err := j.apiServerStatus(ctx)
	if err != nil {
		return false, "", err
	}
	if status == liqov1beta1.ConditionStatusError {
		return false, "", errorf(backend.ErrUnreachable, "ResourceSlice %s/%s has no answer: %s", slice.Namespace, slice.Name,
			message)
	}
	if j.waiting.longerThan(j.graces.answer) {
		if err := j.tenantRefusal(ctx); err != nil {
			return false, "", err
		}
	}
	if err := j.remind(ctx, slice); err != nil {
		return false, "", err
	}
	return false, unanswered, nil
}

// annotationReminded is an annotation of a slice. Its value is the time at which remind last made crd-replicator
// process the slice.
const annotationReminded = "liqo-autoscaler.io/reminded"

// remind changes an annotation of the slice, so that crd-replicator processes the slice again. The annotation has no
// other purpose. remind does this at most once in each Join. If the provider refused a change while it had no Tenant
// of ours, crd-replicator has dropped that change and does not retry it until the slice changes again (Liqo
// internal/crdReplicator/reflection/handler.go).
func (j *join) remind(ctx context.Context, slice *authv1beta1.ResourceSlice) error {
	if j.reminded || !j.waiting.longerThan(j.graces.answer) {
		return nil
	}
	err := nodes.MergePatch(ctx, j.local, slice, map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{
			annotationReminded: time.Now().UTC().Format(time.RFC3339Nano),
		}},
	})
	if err != nil {
		return fmt.Errorf("remind crd-replicator of slice %s: %w", slice.Name, err)
	}
	j.reminded = true
	return nil
}

// tenantRefusal returns a refusal when the provider's administrators have cordoned, drained or removed our Tenant.
// Our Liqo then lacks permissions, so the slice never receives an answer. If this state cannot be read, tenantRefusal
// returns nil, and the answer to the slice decides.
func (j *join) tenantRefusal(ctx context.Context) error {
	if j.locateRemote(ctx) != nil {
		return nil
	}
	if refusing, err := j.refusal(ctx); err == nil && refusing != nil {
		return refuse(*refusing)
	}
	return nil
}

// refused returns the error of a slice that the provider has denied. If the provider refuses this hub as a whole, the
// error is a *backend.RefusingError.
func (j *join) refused(ctx context.Context, words string) error {
	if err := j.tenantRefusal(ctx); err != nil {
		return err
	}
	return errorf(backend.ErrDenied, "%s", words)
}

// grantStep reports done when the provider has granted all the requested resources.
func (j *join) grantStep(ctx context.Context) (bool, string, error) {
	slice, err := j.granting, error(nil)
	if !j.fresh {
		slice, err = j.ensureSlice(ctx)
	}
	j.fresh = false
	if err != nil {
		return false, "", err
	}
	condition := authentication.GetCondition(slice, authv1beta1.ResourceSliceConditionTypeResources)
	switch {
	case condition == nil:
		return j.unanswered(ctx, slice)
	case condition.Reason == string(fleet.CodeNoCapacity) && condition.Status == authv1beta1.ResourceSliceConditionDenied:
		return false, "", errorf(backend.ErrFull, "%s", denial(slice, condition))
	case condition.Status != authv1beta1.ResourceSliceConditionAccepted:
		return false, "", j.refused(ctx, denial(slice, condition))
	}
	if short := nodes.Missing(j.spec.Shape, slice.Status.Resources); short != "" {
		return false, "", errorf(backend.ErrShort, "ResourceSlice %s/%s was granted less than it asked for: %s",
			slice.Namespace,
			slice.Name, short)
	}
	j.granting = slice
	return true, "", nil
}

func denial(slice *authv1beta1.ResourceSlice, condition *authv1beta1.ResourceSliceCondition) string {
	words := fmt.Sprintf("the provider has set %s of ResourceSlice %s/%s to %s (%s)", condition.Type, slice.Namespace,
		slice.Name, condition.Status, condition.Reason)
	if condition.Message != "" {
		words += ": " + condition.Message
	}
	return words
}
