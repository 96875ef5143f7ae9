package liqo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// RemovePeering removes the objects that Establish made. It continues wherever Establish or an earlier RemovePeering
// was interrupted. Liqo requires the order of the steps below: if the Tenant is removed while objects are still
// replicated, or at the same time as the Identity, finalizers remain that no component can remove.
func (b *Backend) RemovePeering(ctx context.Context, provider fleet.Provider, progress backend.Progress) error {
	p := b.peering(provider)
	p.started = backend.StartTime(ctx)
	w := &waiter{progress: progress, stubborn: true}
	if err := p.unpeer(ctx, w); err != nil {
		return fmt.Errorf("remove peering with %s: %w", provider.ID, err)
	}
	return nil
}

func (p *peering) unpeer(ctx context.Context, w *waiter) error {
	s := &survey{peering: p}
	err := w.until(ctx, backend.StageIdentityGone, s.done)
	if err == nil && !s.nothing {
		err = backend.Through(ctx, w.until, []backend.Step{
			{Stage: backend.StageIdentityGone, Poll: p.replicatedGone},
			{Stage: backend.StageIdentityGone, Poll: p.identityGone},
			{Stage: backend.StageIdentityGone, Poll: p.mapsGone},
			{Stage: backend.StageTenantGone, Poll: s.tenantGone},
			{Stage: backend.StageNetworkGone, Poll: s.networkGone},
			{Stage: backend.StageNamespacesGone, Poll: s.leftoversGone},
		})
	}
	if err != nil {
		return err
	}
	if s.kept == nil {
		return w.until(ctx, backend.StageNamespacesGone, func(ctx context.Context) (bool, string, error) {
			err := s.dismiss(ctx)
			return err == nil, "", err
		})
	}
	return &backend.StageError{Stage: backend.StageTenantGone, Message: s.kept.Reason,
		Err: &backend.RefusingError{ProviderRefusal: *s.kept}}
}

// replicatedGone reports done when nothing is replicated to the provider any longer, except objects that depend on
// the Identity itself. Liqo deletes the NamespaceMap with a provider's last virtual node. When two virtual nodes are
// deleted concurrently, Liqo's single worker can miss that one of these nodes was the last one. Therefore
// replicatedGone itself deletes a NamespaceMap that is no longer needed.
func (p *peering) replicatedGone(ctx context.Context) (bool, string, error) {
	if err := p.inUse(ctx); err != nil {
		return false, "", err
	}
	if left, err := p.inUseRemotely(ctx); err != nil || left > 0 {
		return false, fmt.Sprintf("%d left-over ResourceSlice(s) on the provider", left), err
	}
	maps, err := p.namespaceMaps(ctx)
	if err != nil {
		return false, "", err
	}
	if len(maps) > 0 && !slices.ContainsFunc(maps, unowned) {
		return true, "", nil // Liqo removes these NamespaceMaps with their owner, see mapsGone
	}
	owned := func(m offloadingv1beta1.NamespaceMap) bool { return !unowned(m) }
	return p.removeMaps(ctx, slices.DeleteFunc(maps, owned))
}

// mapsGone reports done when no NamespaceMap is left. In a later version of Liqo the Secret of the Identity owns the
// NamespaceMap (liqotech/liqo#3265). That version makes the NamespaceMap again while the Secret exists, and removes
// both together.
func (p *peering) mapsGone(ctx context.Context) (bool, string, error) {
	maps, err := p.namespaceMaps(ctx)
	if err != nil {
		return false, "", err
	}
	return p.removeMaps(ctx, maps)
}

func (p *peering) namespaceMaps(ctx context.Context) ([]offloadingv1beta1.NamespaceMap, error) {
	var maps offloadingv1beta1.NamespaceMapList
	if err := p.local.List(ctx, &maps, outgoing(p.provider.ID)); err != nil {
		return nil, fmt.Errorf("list NamespaceMaps: %w", err)
	}
	return maps.Items, nil
}

func unowned(m offloadingv1beta1.NamespaceMap) bool { return len(m.OwnerReferences) == 0 }

// removeMaps removes the first NamespaceMap of the list. It reports done when the list is empty and the provider has
// no copy.
func (p *peering) removeMaps(ctx context.Context, maps []offloadingv1beta1.NamespaceMap) (bool, string, error) {
	if len(maps) == 0 {
		message, err := p.mapGone(ctx)
		return err == nil && message == "", message, err
	}
	unneeded := &maps[0]
	return false, fmt.Sprintf("NamespaceMap %s/%s is still there", unneeded.Namespace, unneeded.Name),
		p.removeMap(ctx, unneeded)
}

func (p *peering) removeMap(ctx context.Context, unneeded *offloadingv1beta1.NamespaceMap) error {
	if unneeded.DeletionTimestamp == nil && p.hasLasted(p.graces.namespaceMap) {
		if err := nodes.DeleteThis(ctx, p.local, unneeded); err != nil {
			return fmt.Errorf("delete NamespaceMap: %w", err)
		}
	}
	return p.releaseRevoked(ctx, unneeded)
}

// identityGone deletes the Identity and reports done when its kubeconfig and its Renew are gone too. The kubeconfig
// and the Renew have finalizers of crd-replicator. crd-replicator can remove these finalizers only while the Tenant
// exists.
func (p *peering) identityGone(ctx context.Context) (bool, string, error) {
	identity, err := p.controlPlaneIdentity(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("read Identity: %w", err)
	}
	if err == nil {
		return false, fmt.Sprintf("Identity %s/%s is being deleted", identity.Namespace, identity.Name), p.deleteIdentity(ctx,
			identity)
	}
	rest, err := p.identityRest(ctx)
	if err != nil || len(rest) == 0 {
		return err == nil, "", err
	}
	ours, err := p.startedHere(ctx)
	if err != nil {
		return false, "", err
	}
	if !ours {
		revoked, err := p.revoked(ctx)
		if err != nil || revoked {
			return err == nil, "", err // remains of another owner
		}
	}
	for _, object := range rest {
		if err := p.releaseRevoked(ctx, object); err != nil {
			return false, "", err
		}
	}
	return false, fmt.Sprintf("crd-replicator has not released %s/%s yet", rest[0].GetNamespace(), rest[0].GetName()), nil
}

func (p *peering) deleteIdentity(ctx context.Context, identity *authv1beta1.Identity) error {
	if !p.mine(identity) {
		return errorf(backend.ErrConflict, "Identity %s/%s is not ours any longer", identity.Namespace, identity.Name)
	}
	if identity.DeletionTimestamp != nil {
		return nil
	}
	if err := p.inUse(ctx); err != nil { // checked once more, right before the first step that cannot be undone
		return err
	}
	if err := nodes.DeleteThis(ctx, p.local, identity); err != nil {
		return fmt.Errorf("delete Identity: %w", err)
	}
	return nil
}

// identityRest lists the objects that depend on the Identity and are removed after it: the kubeconfig and the Renew.
func (p *peering) identityRest(ctx context.Context) (rest []client.Object, err error) {
	secrets, err := p.controlPlaneSecrets(ctx)
	if err != nil || p.localNS == "" {
		return nil, err
	}
	for i := range secrets {
		if len(secrets[i].OwnerReferences) > 0 { // a Secret made by hand does not belong to Liqo
			rest = append(rest, &secrets[i])
		}
	}
	var renews authv1beta1.RenewList
	if err := p.local.List(ctx, &renews, client.InNamespace(p.localNS), outgoing(p.provider.ID)); err != nil {
		return nil, fmt.Errorf("list Renews: %w", err)
	}
	for i := range renews.Items {
		rest = append(rest, &renews.Items[i])
	}
	return rest, nil
}

// tenantGone deletes the Tenant, which a finalizer of the provider's Liqo keeps while Liqo withdraws our permissions. A
// cordoned or drained Tenant stays, because it expresses the provider's refusal.
func (s *survey) tenantGone(ctx context.Context) (bool, string, error) {
	tenant, err := s.tenant(ctx)
	if err != nil {
		return apierrors.IsNotFound(err), "", client.IgnoreNotFound(err)
	}
	if !s.mine(tenant) {
		return true, "", nil
	}
	if tenant.DeletionTimestamp == nil {
		if refusing := refusingOf(tenant); refusing != nil {
			s.kept = refusing
			err := s.keep(ctx, tenant, refusing.Kind)
			return err == nil, "", err
		}
		err := s.remote.do(ctx, "delete our Tenant", func(provider client.Client) error {
			return deleteAsRead(ctx, provider, tenant)
		})
		if err != nil {
			return false, "", err
		}
	}
	return false, fmt.Sprintf("the provider's liqo-controller-manager has not released Tenant %s/%s yet",
		tenant.Namespace, tenant.Name), nil
}

// leftoversGone removes the nonces and tenant namespaces on the consumer and the provider in one step. In separate
// steps it would wait longer, because Kubernetes starts the removal of a namespace only after five seconds. It
// removes the provider's objects first, because recovery finds the peering by the objects on the consumer. It keeps
// the objects that record a refusal: the nonce of a cordoned or drained Tenant, and the namespace of a recorded
// refusal.
func (s *survey) leftoversGone(ctx context.Context) (bool, string, error) {
	if err := s.locate(ctx); err != nil {
		return false, "", err
	}
	there, message, err := s.remoteLeftovers(ctx)
	if err != nil {
		return false, "", err
	}
	recorded, err := s.recordedRefusal(ctx)
	if err != nil {
		return false, "", err
	}
	if recorded != nil {
		s.kept = recorded
	} else if err := s.removeExpiredRefusal(ctx); err != nil {
		return false, "", err
	}
	here, alsoHere, err := s.leftoverGone(ctx, s.local, s.provider.ID, consts.SignedNonceSecretLabelKey, signedNonceName,
		recorded != nil)
	return here && there, cmp.Or(message, alsoHere), err
}

func (s *survey) remoteLeftovers(ctx context.Context) (gone bool, message string, err error) {
	if s.kept != nil && s.kept.Until.IsZero() {
		return true, "", s.keepHandshake(ctx, s.kept.Kind)
	}
	err = s.remote.do(ctx, "remove our nonce and tenant namespace", func(provider client.Client) (err error) {
		if s.remoteNS != "" {
			if err := deleteCertificates(ctx, provider, s.remoteNS); err != nil {
				return err
			}
		}
		gone, message, err = s.leftoverGone(ctx, provider, s.self.id, consts.NonceSecretLabelKey, nonceName, false)
		return err
	})
	return gone, message, err
}

func (p *peering) leftoverGone(ctx context.Context, cluster client.Client, peer, label, name string,
	keepNamespace bool) (gone bool, message string, err error) {
	namespace, err := tenantNamespace(ctx, cluster, peer)
	if err != nil {
		return apierrors.IsNotFound(err), "", client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp != nil && p.mine(namespace) { // this also removes its objects and our permissions
		return false, fmt.Sprintf("namespace %s is being removed", namespace.Name), nil
	}
	nonce, err := nonceSecret(ctx, cluster, namespace.Name, label, name, peer)
	if client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("read nonce: %w", err)
	}
	if err == nil && p.mine(nonce) {
		if err := nodes.DeleteThis(ctx, cluster, nonce); err != nil {
			return false, "", fmt.Errorf("delete nonce: %w", err)
		}
	}
	if !p.mine(namespace) || keepNamespace {
		return true, "", nil
	}
	return p.namespaceGone(ctx, cluster, namespace)
}

func (p *peering) namespaceGone(ctx context.Context, cluster client.Client,
	namespace *corev1.Namespace) (gone bool, message string, err error) {
	if by, err := p.occupied(ctx, cluster, namespace.Name); err != nil || by != "" {
		return err == nil, "", err // the namespace now serves another owner, and belongs to that owner
	}
	if err := nodes.DeleteThis(ctx, cluster, namespace); err != nil {
		return false, "", fmt.Errorf("delete namespace: %w", err)
	}
	return false, fmt.Sprintf("namespace %s is being removed", namespace.Name), nil
}

// deleteAsRead deletes exactly the version that was read. If the object has changed since, for example because the
// provider has set a refusal in it, the deletion fails and the next poll decides again.
func deleteAsRead(ctx context.Context, cluster client.Client, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return client.IgnoreNotFound(cluster.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}
