package liqo

import (
	"context"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tenancy is a kind of object that shows that a tenant namespace is in use. If the field which is not nil, only
// objects with these labels count.
type tenancy struct {
	kind  schema.GroupVersionKind
	which client.HasLabels
}

// tenancies lists the kinds of objects that show that a tenant namespace is in use.
var tenancies = []tenancy{
	{authv1beta1.GroupVersion.WithKind("Tenant"), nil},
	{authv1beta1.GroupVersion.WithKind("Identity"), nil},
	{authv1beta1.GroupVersion.WithKind("ResourceSlice"), nil},
	{offloadingv1beta1.SchemeGroupVersion.WithKind("VirtualNode"), nil},
	{offloadingv1beta1.SchemeGroupVersion.WithKind("NamespaceMap"), nil},
	{networking.WithKind(kindConfiguration), nil},
	{networking.WithKind(kindServer), nil},
	{networking.WithKind(kindClient), nil},
	{corev1.SchemeGroupVersion.WithKind("Secret"), client.HasLabels{consts.NonceSecretLabelKey}},
	{corev1.SchemeGroupVersion.WithKind("Secret"), client.HasLabels{consts.SignedNonceSecretLabelKey}},
}

// occupied names an object of a tenant namespace that does not belong to our peering: an object of the second
// direction of a two-way peering, of a network, or of a peering that was made by hand. It returns "" if no such
// object exists. Three sorts of objects do not count: dependents, which are removed with their owner; replicas that
// crd-replicator has put into the namespace for us; and Liqo's certificates (liqo-remote-certificate*), which are
// useless without the removed Tenant.
func (p *peering) occupied(ctx context.Context, cluster client.Client, namespace string) (string, error) {
	found, errs := concurrently(tenancies, func(t tenancy) (found metav1.PartialObjectMetadataList, err error) {
		found.SetGroupVersionKind(t.kind.GroupVersion().WithKind(t.kind.Kind + "List"))
		err = cluster.List(ctx, &found, t.which, client.InNamespace(namespace))
		return found, client.IgnoreNotFound(err) // a kind that is not installed has no objects
	})
	for n := range found {
		if errs[n] != nil {
			return "", fmt.Errorf("list what is left in namespace %s: %w", namespace, errs[n])
		}
		for _, object := range found[n].Items {
			if len(object.OwnerReferences) == 0 && object.Labels[consts.ReplicationOriginLabel] != p.self.id {
				return tenancies[n].kind.Kind + " " + object.Name, nil
			}
		}
	}
	return "", nil
}
