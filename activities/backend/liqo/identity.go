package liqo

import (
	"bytes"
	"context"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// ensureIdentity passes the credentials that the provider has put into the Tenant to our own Liqo. It reports done
// once Liqo has made a kubeconfig from them.
func (p *peering) ensureIdentity(ctx context.Context, tenant *authv1beta1.Tenant,
	h handshake) (done bool, message string, err error) {
	annotations := p.annotations()
	if p.remote.authorities != "" {
		annotations[annotationPin] = p.remote.authorities
	}
	identity, err := p.controlPlaneIdentity(ctx)
	if apierrors.IsNotFound(err) {
		return false, "Identity was made", p.local.Create(ctx, p.forgeIdentity(tenant, annotations))
	}
	if err != nil {
		return false, "", fmt.Errorf("read Identity: %w", err)
	}
	switch {
	case identity.DeletionTimestamp != nil:
		return false, fmt.Sprintf("Identity %s/%s of an earlier peering is being removed", identity.Namespace, identity.Name),
			nil
	case !p.mine(identity):
		return false, "", errorf(backend.ErrConflict, "somebody else is making this peering now: Identity %s/%s has appeared",
			identity.Namespace, identity.Name)
	}
	if identity.Annotations[annotationPin] != "" && !bytes.Equal(identity.Spec.AuthParams.CA,
		tenant.Status.AuthParams.CA) {
		return false, "", errorf(backend.ErrInvalid,
			"provider %s answers our Tenant with another certificate authority than "+
				"Identity %s/%s has: if it has a new one, run liqo-autoscaler offers repin %s", p.provider.ID, identity.Namespace,
			identity.Name, p.provider.ID)
	}
	before := identity.DeepCopy()
	identity.Annotations = with(identity.Annotations, annotations)
	identity.Spec.Namespace = ptr.To(tenant.Status.TenantNamespace)
	if outdated(&identity.Spec.AuthParams, tenant.Status.AuthParams, h.publicDER) {
		identity.Spec.AuthParams = *tenant.Status.AuthParams
	}
	if err := patchIfChanged(ctx, p.local, before, identity); err != nil {
		return false, "", fmt.Errorf("patch Identity: %w", err)
	}
	if identity.Status.KubeconfigSecretRef == nil {
		return false, fmt.Sprintf("this cluster's liqo-controller-manager has made no kubeconfig of Identity %s/%s yet",
			identity.Namespace, identity.Name), nil
	}
	return true, "", nil
}

func (p *peering) forgeIdentity(tenant *authv1beta1.Tenant, annotations map[string]string) *authv1beta1.Identity {
	return &authv1beta1.Identity{
		ObjectMeta: metav1.ObjectMeta{
			Name:        p.identityName(),
			Namespace:   p.localNS,
			Labels:      with(p.labels(), map[string]string{consts.RemoteClusterID: p.provider.ID}),
			Annotations: annotations,
		},
		Spec: authv1beta1.IdentitySpec{
			ClusterID:  liqov1beta1.ClusterID(p.provider.ID),
			Type:       authv1beta1.ControlPlaneIdentityType,
			AuthParams: *tenant.Status.AuthParams,
			Namespace:  ptr.To(tenant.Status.TenantNamespace),
		},
	}
}

// outdated reports whether the credentials in the Tenant (answer) must replace those in the Identity (have). Liqo 1.2
// renews the Identity's certificate automatically, so an Identity may be newer than the Tenant.
func outdated(have, answer *authv1beta1.AuthParams, publicDER []byte) bool {
	if !certifies(have, publicDER) || have.APIServer != answer.APIServer || !bytes.Equal(have.CA, answer.CA) ||
		ptr.Deref(have.ProxyURL, "") != ptr.Deref(answer.ProxyURL, "") {
		return true
	}
	old, err := certificateOf(have)
	if err != nil {
		return false
	}
	fresh, err := certificateOf(answer)
	return err == nil && fresh.NotAfter.After(old.NotAfter)
}

// foreignIdentity reports done when the peering, which belongs to another owner, has its kubeconfig.
func (p *peering) foreignIdentity(ctx context.Context) (done bool, message string, err error) {
	if err := p.locate(ctx); err != nil {
		return false, "", err
	}
	if identity, err := p.controlPlaneIdentity(ctx); err == nil && identity.DeletionTimestamp != nil {
		return false, fmt.Sprintf("somebody else is removing this peering: Identity %s/%s is being deleted",
			identity.Namespace, identity.Name), nil
	}
	secrets, err := p.controlPlaneSecrets(ctx)
	if err != nil || len(secrets) > 0 {
		return err == nil, "", err
	}
	return false, "this peering was begun by somebody else and is not finished: no kubeconfig of it exists here; finish " +
		"it, or remove the provider's Tenant " + p.self.id, nil
}

// patchIfChanged sends the difference between before and after as a merge patch. If they are equal, it sends nothing.
func patchIfChanged(ctx context.Context, cluster client.Client, before, after client.Object) error {
	patch := client.MergeFrom(before)
	data, err := patch.Data(after)
	if err != nil || string(data) == "{}" {
		return err
	}
	return cluster.Patch(ctx, after, patch)
}
