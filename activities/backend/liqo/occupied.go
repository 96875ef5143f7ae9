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

// tenancy is a kind of object that shows that a tenant namespace is in use.
type tenancy struct {
	kind  schema.GroupVersionKind
	which []client.ListOption
}

func tenancies() []tenancy {
	plain := func(gv schema.GroupVersion, kinds ...string) (found []tenancy) {
		for _, kind := range kinds {
			found = append(found, tenancy{kind: gv.WithKind(kind)})
		}
		return found
	}
	secrets := func(label string) tenancy {
		return tenancy{kind: corev1.SchemeGroupVersion.WithKind("Secret"),
			which: []client.ListOption{client.HasLabels{label}}}
	}
	all := plain(authv1beta1.GroupVersion, "Tenant", "Identity", "ResourceSlice")
	all = append(all, plain(offloadingv1beta1.SchemeGroupVersion, "VirtualNode", "NamespaceMap")...)
	all = append(all, plain(networking, "Configuration", "GatewayServer", "GatewayClient")...)
	return append(all, secrets(consts.NonceSecretLabelKey), secrets(consts.SignedNonceSecretLabelKey))
}

// occupied says which object of a tenant namespace still serves someone: another direction, networking, a peering by
// hand. It is "" when there is none. Objects that hang on an owner go with it and do not count, nor does what
// crd-replicator has put there for us, nor Liqo's certificates (liqo-remote-certificate*), which are only worth
// something to the Tenant that is gone.
func (p *peering) occupied(ctx context.Context, cluster client.Client, namespace string) (string, error) {
	for _, tenancy := range tenancies() {
		var found metav1.PartialObjectMetadataList
		found.SetGroupVersionKind(tenancy.kind.GroupVersion().WithKind(tenancy.kind.Kind + "List"))
		err := cluster.List(ctx, &found, append(tenancy.which, client.InNamespace(namespace))...)
		if client.IgnoreNotFound(err) != nil { // a kind that is not installed has no objects
			return "", fmt.Errorf("list what is left in namespace %s: %w", namespace, err)
		}
		for i := range found.Items {
			if len(found.Items[i].OwnerReferences) == 0 && found.Items[i].Labels[consts.ReplicationOriginLabel] != p.self.id {
				return tenancy.kind.Kind + " " + found.Items[i].Name, nil
			}
		}
	}
	return "", nil
}
