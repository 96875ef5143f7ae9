package liqo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Liqo gives a consumer a certificate with which the consumer's control plane acts on the provider. The provider has
// applied the manifests of provider-access, which restrict this certificate. With it, the consumer can neither act as
// another consumer nor grant itself resources. The consumer's own Liqo still works.
func TestLabTrust(t *testing.T) {
	l := theLab(t)
	if l.rights == nil {
		t.Skip("needs the accounts of provider-access: make e2e SUITE=trust")
	}
	b, p := l.backend(t), l.provider(1)
	require.NoError(t, b.Establish(t.Context(), p, nil))
	a := attempt(600, p)
	_, err := b.Join(within(t, time.Minute), nodeSpec(a), nil)
	require.NoError(t, err, "what the consumer's Liqo does passes")
	consumers, err := dynamic.NewForConfig(l.controlPlane(t, p))
	require.NoError(t, err)
	in := func(kind string) dynamic.ResourceInterface {
		return consumers.Resource(authentication(kind)).Namespace("liqo-tenant-" + consumer)
	}
	slice, err := in("resourceslices").Get(t.Context(), a.ObjectName(), metav1.GetOptions{})
	require.NoError(t, err, "the certificate is good")
	csr, _, _ := unstructured.NestedString(slice.Object, "spec", "csr")
	require.NotEmpty(t, csr)
	patch := func(change string, of ...string) error {
		_, err := in("resourceslices").Patch(t.Context(), a.ObjectName(), types.MergePatchType, []byte(change),
			metav1.PatchOptions{}, of...)
		return err
	}
	create := func(kind string, o *unstructured.Unstructured) error {
		_, err := in(kind).Create(t.Context(), o, metav1.CreateOptions{})
		return err
	}
	renew := func(spec map[string]any) *unstructured.Unstructured {
		o := slice.DeepCopy()
		o.SetKind("Renew")
		o.Object = map[string]any{"apiVersion": o.GetAPIVersion(), "kind": "Renew", "spec": spec,
			"metadata": map[string]any{"name": "attack", "labels": o.Object["metadata"].(map[string]any)["labels"]}}
		spec["consumerClusterID"] = consumer
		return o
	}
	for what, attack := range map[string]struct {
		says string
		err  error
	}{
		"grant itself": {"the status of a slice", patch(
			`{"status": {"resources": {"cpu": "1k"}, "conditions": [{"type": "Resources", "status": "Accepted"}]}}`, "status")},
		"labels off": {"has its id in consumerClusterID", patch(`{"metadata": {"labels": null}}`)},
		"another consumer's slice": {"has its id in consumerClusterID", patch(
			`{"spec": {"consumerClusterID": "turin"}}`)},
		"an amount that takes hours to add": {"an amount of a slice", patch(
			`{"spec": {"resources": {"cpu": "1e100000000"}}}`)},
		"certificate of another name": {"repeats the certificate request", create("renews", renew(map[string]any{
			"identityType": "ControlPlane", "csr": csr}))},
		"certificate of a slice": {"certificates of slices are not renewed", create("renews", renew(map[string]any{
			"identityType": "ResourceSlice", "csr": csr, "resourceSliceRef": map[string]any{"name": a.ObjectName()}}))},
	} {
		require.ErrorContains(t, attack.err, attack.says, what)
	}
	l.renewed(t, p)
	l.upgraded(t)
	worker, err := clientcmd.BuildConfigFromFlags("", l.clusters[consumer].account)
	require.NoError(t, err)
	own, err := dynamic.NewForConfig(worker)
	require.NoError(t, err)
	_, err = own.Resource(offloading("virtualnodes")).Namespace("liqo-tenant-"+p.ID).Patch(t.Context(),
		a.ObjectName(), types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"liqo-autoscaler.io/called-back": "x"}}}`), metav1.PatchOptions{})
	require.NoError(t, err, "a VirtualNode of the Liqo before")
	later := attempt(601, p)
	_, err = b.Join(within(t, time.Minute), nodeSpec(later), nil)
	require.NoError(t, err, "a node of the Liqo after")
	require.NoError(t, b.Return(within(t, time.Minute), later, nil))
	require.NoError(t, b.Return(within(t, time.Minute), a, nil))
	require.NoError(t, b.RemovePeering(within(t, time.Minute), p, nil))
	// In a new cluster the garbage collector starts with a delay.
	require.NoError(t, poll(within(t, 3*time.Minute), func(ctx context.Context) (bool, error) {
		left, err := l.objects(ctx)
		return len(left) == 0, err
	}))
}

// upgraded changes the image of virtual kubelets until the test ends, as an upgrade of Liqo does.
func (l *lab) upgraded(t *testing.T) {
	t.Helper()
	templates := l.clusters[consumer].any.Resource(offloading("vkoptionstemplates")).Namespace("liqo")
	const name = "virtual-kubelet-default"
	before, err := templates.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	image, _, _ := unstructured.NestedString(before.Object, "spec", "containerImage")
	set := func(ctx context.Context, image string) {
		_, err := templates.Patch(ctx, name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec": {"containerImage": %q}}`, image), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	set(t.Context(), image+"-later")
	t.Cleanup(func() { set(context.WithoutCancel(t.Context()), image) })
}

// controlPlane returns the client configuration with which the consumer's crd-replicator acts on a provider.
func (l *lab) controlPlane(t *testing.T, p fleet.Provider) *rest.Config {
	t.Helper()
	secrets, err := l.clusters[consumer].kube.CoreV1().Secrets("liqo-tenant-"+p.ID).List(t.Context(), metav1.ListOptions{
		LabelSelector: "liqo.io/identity-type=ControlPlane"})
	require.NoError(t, err)
	require.Len(t, secrets.Items, 1)
	config, err := clientcmd.RESTConfigFromKubeConfig(secrets.Items[0].Data["kubeconfig"])
	require.NoError(t, err)
	return config
}

// renewed makes the consumer's Liqo renew the certificate of its control plane. It waits until the provider has
// answered.
func (l *lab) renewed(t *testing.T, p fleet.Provider) {
	t.Helper()
	namespace := "liqo-tenant-" + p.ID
	identities := l.clusters[consumer].any.Resource(authentication("identities")).Namespace(namespace)
	annotate := func(value string) {
		_, err := identities.Patch(t.Context(), "controlplane-"+p.ID, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata": {"annotations": {"liqo.io/renew": %s}}}`, value), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	renews := l.clusters[consumer].any.Resource(authentication("renews")).Namespace(namespace)
	annotate(`"true"`)
	require.NoError(t, ignoreNotFound(renews.Delete(t.Context(), "controlplane-"+p.ID, metav1.DeleteOptions{})))
	require.NoError(t, poll(within(t, time.Minute), func(ctx context.Context) (bool, error) {
		found, err := renews.Get(ctx, "controlplane-"+p.ID, metav1.GetOptions{})
		if err != nil || found.GetDeletionTimestamp() != nil {
			return false, ignoreNotFound(err)
		}
		signed, _, _ := unstructured.NestedString(found.Object, "status", "authParams", "signedCRT")
		return signed != "", nil
	}), "a Renew of the consumer's Liqo is answered")
	annotate("null")
}
