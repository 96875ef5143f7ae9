package liqo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Published reads a key of a ConfigMap in this cluster's tenant namespace on the provider. It sends one or two
// requests and waits for the answers. Errors: ErrInvalid when the ConfigMap or key is missing or may not be read,
// ErrUnreachable.
func (b *Backend) Published(ctx context.Context, credentials fleet.Credentials, name, key string) (string, error) {
	self, err := b.consumer(ctx)
	if err != nil {
		return "", err
	}
	provider, err := b.open(ctx, credentials)
	if err != nil {
		return "", err
	}
	ctx = withIdentityBound(ctx)
	namespace, err := tenantNamespace(ctx, provider, self.id)
	if err != nil {
		return "", publishedError(tenantNamespaceName(self.id), name, err)
	}
	var found corev1.ConfigMap
	if err := provider.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: name}, &found); err != nil {
		return "", publishedError(namespace.Name, name, err)
	}
	document, ok := found.Data[key]
	if !ok {
		return "", errorf(backend.ErrInvalid,
			"ConfigMap %s/%s on the provider has no key %q: does its agent offer to this hub?",
			namespace.Name, name, key)
	}
	return document, nil
}

// publishedError returns the error for a ConfigMap that cannot be read.
func publishedError(namespace, name string, err error) error {
	what := fmt.Sprintf("ConfigMap %s/%s on the provider", namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return errorf(backend.ErrInvalid, "there is no %s: is its agent running, without a discovery server?", what)
	case isUnauthorized(err):
		return errorf(backend.ErrInvalid, "%s may not be read: apply what liqo-autoscaler provider-access prints there: %v",
			what, err)
	default:
		return accessError("read "+what, err)
	}
}
