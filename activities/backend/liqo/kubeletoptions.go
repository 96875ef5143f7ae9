package liqo

import (
	"context"
	"fmt"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// standardOptions is the VkOptionsTemplate that Liqo's chart installs. networklessOptions is our own template in a
// provider's tenant namespace. withoutIPReflection is the argument that our template adds (Liqo
// cmd/virtual-kubelet/root/flag.go).
const (
	standardOptions     = "virtual-kubelet-default"
	networklessOptions  = "liqo-autoscaler-no-network"
	withoutIPReflection = "--disable-ip-reflection=true"
)

// kubeletOptions returns the VkOptionsTemplate for the attempt's node. It is the template that the offer names. For a
// node without a network it is our own copy of that template. A nil result means Liqo's standard template.
func (j *join) kubeletOptions(ctx context.Context) (*corev1.ObjectReference, error) {
	_, options, err := readNetwork(j.Provider.Network)
	if err != nil || j.network != fleet.NetworkNone && options.VirtualKubelet == standardOptions {
		return nil, err
	}
	named := newOptions()
	key := client.ObjectKey{Namespace: j.self.namespace, Name: options.VirtualKubelet}
	err = j.local.Get(ctx, key, named)
	switch {
	case apierrors.IsNotFound(err) && options.VirtualKubelet != standardOptions:
		return nil, errorf(backend.ErrInvalid, "there is no VkOptionsTemplate %s, which the offer names as virtualKubelet",
			key)
	case err != nil:
		return nil, fmt.Errorf("read VkOptionsTemplate %s, which Liqo's chart installs: %w", key, err)
	case j.network == fleet.NetworkNone:
		return j.ensureNetworklessOptions(ctx, named)
	}
	return referenceTo(named), nil
}

// newOptions returns a VkOptionsTemplate without fields. It is unstructured, so that a copy keeps the fields that later
// versions of Liqo add.
func newOptions() *unstructured.Unstructured {
	options := &unstructured.Unstructured{}
	options.SetGroupVersionKind(offloadingv1beta1.SchemeGroupVersion.WithKind("VkOptionsTemplate"))
	return options
}

func referenceTo(options *unstructured.Unstructured) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: options.GetAPIVersion(), Kind: options.GetKind(),
		Namespace: options.GetNamespace(), Name: options.GetName()}
}

// ensureNetworklessOptions returns the VkOptionsTemplate for nodes without a network. It is a copy of the template
// that the offer names, usually the standard template, plus one argument. With this argument the pods on the node
// have no address on the consumer. So Services send no traffic to these pods: the traffic could not reach them. When
// the original template has changed, as after a Liqo upgrade, it is copied again. Installations on the same cluster
// share the template.
func (j *join) ensureNetworklessOptions(ctx context.Context,
	standard *unstructured.Unstructured) (*corev1.ObjectReference, error) {
	found := newOptions()
	want, err := withoutNetwork(standard, j.localNS)
	if err != nil {
		return nil, err
	}
	err = j.local.Get(ctx, client.ObjectKeyFromObject(want), found)
	switch {
	case apierrors.IsNotFound(err):
		err = j.local.Create(ctx, want)
	case err == nil && !equality.Semantic.DeepEqual(found.Object["spec"], want.Object["spec"]):
		want.SetResourceVersion(found.GetResourceVersion())
		err = j.local.Update(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("write VkOptionsTemplate %s/%s: %w", want.GetNamespace(), want.GetName(), err)
	}
	return referenceTo(want), nil
}

// withoutNetwork returns the template for nodes without a network: a copy of standard in the given namespace, plus
// withoutIPReflection.
func withoutNetwork(standard *unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	want := newOptions()
	want.SetNamespace(namespace)
	want.SetName(networklessOptions)
	want.SetLabels(map[string]string{backend.LabelManagedBy: backend.ManagedBy})
	spec, _, err := unstructured.NestedMap(standard.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("copy VkOptionsTemplate %s: %w", standard.GetName(), err)
	}
	args, _, err := unstructured.NestedStringSlice(spec, "extraArgs")
	if err == nil {
		err = unstructured.SetNestedStringSlice(spec, append(args, withoutIPReflection), "extraArgs")
	}
	if err == nil {
		err = unstructured.SetNestedMap(want.Object, spec, "spec")
	}
	if err != nil {
		return nil, fmt.Errorf("copy VkOptionsTemplate %s: %w", standard.GetName(), err)
	}
	return want, nil
}

// dropNetworklessOptions removes our VkOptionsTemplate from a tenant namespace that stays, once no virtual node names
// it. Liqo's webhook refuses each update of a virtual node whose template is missing, and therefore also its removal
// (Liqo pkg/webhooks/virtualnode).
func (p *peering) dropNetworklessOptions(ctx context.Context) error {
	var nodes offloadingv1beta1.VirtualNodeList
	if err := p.local.List(ctx, &nodes, client.InNamespace(p.localNS)); err != nil {
		return fmt.Errorf("list virtual nodes in namespace %s: %w", p.localNS, err)
	}
	for i := range nodes.Items {
		if ref := nodes.Items[i].Spec.VkOptionsTemplateRef; ref != nil && ref.Name == networklessOptions {
			return nil
		}
	}
	err := p.local.Delete(ctx, &offloadingv1beta1.VkOptionsTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.localNS, Name: networklessOptions}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete VkOptionsTemplate %s/%s: %w", p.localNS, networklessOptions, err)
	}
	return nil
}
