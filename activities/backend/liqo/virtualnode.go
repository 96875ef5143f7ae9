package liqo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/offloading/forge"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// virtualNodeStep makes the virtual node once Liqo has a kubeconfig for the slice. It reports done when Liqo has
// started the virtual kubelet of that virtual node. Liqo's condition Running only proves that the Deployment was
// applied.
func (j *join) virtualNodeStep(ctx context.Context) (bool, string, error) {
	if j.absent {
		return j.createVirtualNode(ctx)
	}
	virtual, err := j.virtualNode(ctx)
	if apierrors.IsNotFound(err) {
		j.absent = true
		return j.createVirtualNode(ctx)
	}
	if err != nil {
		return false, "", err
	}
	if virtual.DeletionTimestamp != nil {
		return false, "", errorf(backend.ErrConflict, "VirtualNode %s/%s is being removed", virtual.Namespace, virtual.Name)
	}
	for _, condition := range virtual.Status.Conditions {
		if condition.Type == offloadingv1beta1.VirtualKubeletConditionType &&
			condition.Status == offloadingv1beta1.RunningConditionStatusType {
			j.virtual = virtual
			return true, "", nil
		}
	}
	return false, fmt.Sprintf("this cluster's liqo-controller-manager has not started a virtual kubelet for VirtualNode "+
		"%s/%s yet", virtual.Namespace, virtual.Name), nil
}

// identityOfSlice is the prefix of the name of a slice's Identity (Liqo
// pkg/liqo-controller-manager/authentication/forge).
const identityOfSlice = "resourceslice-"

func (j *join) createVirtualNode(ctx context.Context) (bool, string, error) {
	if err := j.allowAgain(ctx); err != nil {
		return false, "", err
	}
	slice := j.granting
	if err := j.checkLabels(slice); err != nil {
		return false, "", err
	}
	var identity authv1beta1.Identity
	name := identityOfSlice + slice.Name
	err := j.local.Get(ctx, client.ObjectKey{Namespace: slice.Namespace, Name: name}, &identity)
	if client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("read Identity %s: %w", name, err)
	}
	if err != nil || identity.Status.KubeconfigSecretRef == nil {
		return false, fmt.Sprintf("this cluster's liqo-controller-manager has made no kubeconfig of Identity %s/%s yet",
			slice.Namespace, name), nil
	}
	virtual, err := j.forgeVirtualNode(ctx, slice, identity.Status.KubeconfigSecretRef.Name)
	if err != nil {
		return false, "", err
	}
	// This call must follow MutateVirtualNode, which panics on a new virtual node that names a template.
	if virtual.Spec.VkOptionsTemplateRef, err = j.kubeletOptions(ctx); err != nil {
		return false, "", err
	}
	err = j.local.Create(ctx, virtual)
	j.absent = false
	if nameTaken(err) {
		if _, err := j.virtualNode(ctx); !apierrors.IsNotFound(err) {
			return false, "", err // the virtual node of an earlier Join, whose request arrived late
		}
		return false, "", errorf(backend.ErrConflict, "a VirtualNode or Node %s exists and is not this attempt's",
			virtual.Name)
	}
	if err != nil {
		return false, "", fmt.Errorf("create virtual node %s: %w", virtual.Name, err)
	}
	return false, fmt.Sprintf("VirtualNode %s/%s was made", virtual.Namespace, virtual.Name), nil
}

// allowedFor is the time for which a result of allow is valid. A slice's answer and its kubeconfig usually arrive
// within this time.
const allowedFor = time.Second

// allow checks that a virtual node may be made from the slice, which has just been read. Join calls it while it waits
// for the provider, so that the check is complete when the answer arrives.
func (j *join) allow(ctx context.Context, slice *authv1beta1.ResourceSlice) error {
	began := time.Now()
	there, err := j.virtualThere(ctx)
	if err != nil {
		return err
	}
	mode, held := j.networkHeld(there, j.name())
	if j.network = j.Provider.Network.ModeOrDefault(); held {
		j.network = mode
	}
	virtual, err := j.forgeVirtualNode(ctx, slice, "")
	if err == nil {
		err = j.undivided(ctx, there, virtual)
	}
	if err == nil && !j.several {
		err = j.checkOnlySlice(ctx)
	}
	if err != nil {
		return err
	}
	j.granting, j.allowedAt = slice, began
	return nil
}

// allowAgain repeats allow when its last result is too old.
func (j *join) allowAgain(ctx context.Context) error {
	if time.Since(j.allowedAt) < allowedFor {
		return nil
	}
	j.several = false
	slice, err := j.ensureSlice(ctx)
	if err != nil {
		return err
	}
	return j.allow(ctx, slice)
}

// checkLabels returns ErrDenied when the provider's nodes have a label with another value than the group declares. It
// does not compare type=virtual-node, which every virtual node has.
func (j *join) checkLabels(slice *authv1beta1.ResourceSlice) error {
	for _, key := range slices.Sorted(maps.Keys(j.spec.Labels)) {
		if key == fleet.LabelType && j.spec.Labels[key] == fleet.TypeVirtualNode {
			continue
		}
		if theirs, ok := slice.Status.NodeLabels[key]; ok && theirs != j.spec.Labels[key] {
			return errorf(backend.ErrDenied, "the group's nodes have the label %s=%s, and those of provider %s have %s=%.63s: "+
				"select another provider, or declare no such label", key, j.spec.Labels[key], j.Provider.ID, key, theirs)
		}
	}
	return nil
}

// forgeVirtualNode returns the virtual node that Liqo's own creator would make from a slice (Liqo
// virtualnodecreator_controller.go), plus taints. It has the group's labels instead of the provider's: with labels of
// its choice a provider could attract pods, and its nodes would differ from the group's template. Annotations identify
// the owner of the Node. The size of the Node is the shape itself, because a provider may grant kinds of resources that
// were not requested.
func (j *join) forgeVirtualNode(ctx context.Context, slice *authv1beta1.ResourceSlice,
	kubeconfig string) (*offloadingv1beta1.VirtualNode, error) {
	options := forge.VirtualNodeOptionsFromResourceSlice(slice, kubeconfig, nil)
	options.ResourceList, options.NodeLabels = j.spec.Shape, nil
	virtual := forge.VirtualNode(slice.Name, slice.Namespace)
	err := forge.MutateVirtualNode(ctx, j.local, virtual, liqov1beta1.ClusterID(j.Provider.ID), options, nil, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("forge virtual node: %w", err)
	}
	virtual.Labels = with(virtual.Labels, j.labels(), map[string]string{consts.ResourceSliceNameLabelKey: slice.Name})
	booking, err := json.Marshal(j.spec.Booking)
	if err != nil {
		return nil, errorf(backend.ErrInvalid, "the booking of %s cannot be written: %v", j.Instance, err)
	}
	virtual.Annotations = with(virtual.Annotations, j.annotations(),
		map[string]string{backend.AnnotationBooking: string(booking)})
	virtual.Spec.Labels = with(virtual.Spec.Labels, j.spec.Labels, map[string]string{backend.LabelGroup: j.Group})
	virtual.Spec.Annotations = with(virtual.Spec.Annotations, j.labels(), j.spec.Price())
	virtual.Spec.Taints = j.spec.Taints
	if j.network == fleet.NetworkNone {
		virtual.Spec.DisableNetworkCheck = ptr.To(true) // this node does not use the network of another owner
	}
	if err := controllerutil.SetControllerReference(slice, virtual, j.local.Scheme()); err != nil {
		return nil, fmt.Errorf("forge virtual node: %w", err)
	}
	return virtual, nil
}

// kubeletTrouble returns the reason why the virtual kubelet's pods do not run, or "". The most frequent reason is
// that the cluster has no free capacity for these pods.
func (j *join) kubeletTrouble(ctx context.Context) string {
	var pods corev1.PodList
	err := j.local.List(ctx, &pods, client.InNamespace(j.localNS),
		client.MatchingLabels{consts.VirtualNodeLabel: j.name()})
	if err != nil {
		return ""
	}
	for i := range pods.Items {
		if lacks := noRoomFor(&pods.Items[i]); lacks != "" {
			return lacks
		}
		if trouble := podTrouble(&pods.Items[i]); trouble != "" {
			return fmt.Sprintf("virtual kubelet pod %s: %s", pods.Items[i].Name, trouble)
		}
	}
	return ""
}

func podTrouble(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason + ": " + condition.Message
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			return strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
		}
	}
	return ""
}
