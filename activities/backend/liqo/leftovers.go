package liqo

import (
	"cmp"
	"context"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Leftovers finds slices on the provider that were replicated from this cluster and no longer exist here. It also finds
// the remaining objects of a peering that has no object on the consumer.
func (b *Backend) Leftovers(ctx context.Context, provider fleet.Provider) (left []fleet.Orphan, err error) {
	p := b.peering(provider)
	err = p.locateBoth(ctx)
	if err == nil && p.remoteNS != "" {
		left, err = p.leftSlices(ctx)
	}
	if err == nil && p.remoteNS != "" {
		var peering *fleet.Orphan
		if peering, err = p.leftPeering(ctx); peering != nil {
			left = append(left, *peering)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("look for what is left on provider %s: %w", provider.ID, err)
	}
	return left, nil
}

// maxLeft is the maximum number of a provider's slices that one call reads by name on the consumer. It exists because
// a provider may list any number of slices.
const maxLeft = 50

// leftSlices lists the provider's slices without a counterpart here.
func (p *peering) leftSlices(ctx context.Context) (left []fleet.Orphan, err error) {
	checked := 0
	var found authv1beta1.ResourceSliceList
	err = p.remote.do(ctx, "list our slices", func(provider client.Client) error {
		return provider.List(ctx, &found, client.InNamespace(p.remoteNS),
			client.MatchingLabels{consts.ReplicationOriginLabel: p.self.id})
	})
	if err != nil {
		return nil, err
	}
	known, err := p.allHere(ctx)
	if err != nil {
		return nil, err
	}
	for i := range found.Items {
		slice := &found.Items[i]
		attempt, ok := attemptOf(slice)
		if !ok || !p.mine(slice) || known[slice.Name] {
			continue
		}
		if checked++; checked > maxLeft {
			break
		}
		if here, err := p.sliceHere(ctx, slice.Name); err != nil || here {
			if err != nil {
				return nil, err
			}
			continue
		}
		attempt.Provider = p.provider
		left = append(left, fleet.Orphan{Attempt: attempt, UID: string(slice.UID), Foreign: !p.signedByUs(slice),
			Object: fmt.Sprintf("ResourceSlice %s/%s", slice.Namespace, slice.Name)})
	}
	return left, nil
}

// allHere returns the names of the consumer's slices for the provider.
func (p *peering) allHere(ctx context.Context) (map[string]bool, error) {
	var found authv1beta1.ResourceSliceList
	if err := p.local.List(ctx, &found, outgoing(p.provider.ID)); err != nil {
		return nil, fmt.Errorf("list slices on %s: %w", p.provider.ID, err)
	}
	names := map[string]bool{}
	for i := range found.Items {
		names[found.Items[i].Name] = true
	}
	return names, nil
}

// sliceHere reports whether the slice exists on the consumer. It reads the slice by name, because a list by labels
// would miss a slice that has lost its labels.
func (p *peering) sliceHere(ctx context.Context, name string) (bool, error) {
	namespace := cmp.Or(p.localNS, tenantNamespaceName(p.provider.ID))
	err := p.local.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &authv1beta1.ResourceSlice{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read slice %s here: %w", name, err)
	}
	return err == nil, nil
}

// signedByUs reports whether an object on the provider carries the UID of this cluster.
func (p *peering) signedByUs(object client.Object) bool {
	return object.GetLabels()[labelConsumerUID] == p.self.uid
}

// cloned reports whether an object on the provider carries the UID of another cluster.
func (p *peering) cloned(object client.Object) bool {
	return object.GetLabels()[labelConsumerUID] != "" && !p.signedByUs(object)
}

// leftPeering returns our objects of the peering on the provider, if the consumer has no part of the peering;
// otherwise nil. It does not include the records of a refusal, because they must stay.
func (p *peering) leftPeering(ctx context.Context) (*fleet.Orphan, error) {
	if exists, err := p.existsHere(ctx); exists || err != nil {
		return nil, err
	}
	objects, err := p.partsThere(ctx)
	var left *fleet.Orphan
	for _, object := range objects {
		if !p.mine(object) || object.GetLabels()[backend.LabelRefused] != "" {
			continue
		}
		what := fmt.Sprintf("%T", object)
		if gvk, err := p.local.GroupVersionKindFor(object); err == nil {
			what = gvk.Kind
		}
		what += " " + client.ObjectKeyFromObject(object).String()
		if left == nil {
			left = &fleet.Orphan{Attempt: fleet.Attempt{Provider: p.provider}, UID: string(object.GetUID()), Object: what}
		} else {
			left.Object += ", " + what
		}
		left.Foreign = left.Foreign || !p.signedByUs(object)
	}
	return left, err
}

// existsHere reports whether the consumer has any part of the peering, of any owner.
func (p *peering) existsHere(ctx context.Context) (bool, error) {
	_, err := p.controlPlaneIdentity(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Identity of %s: %w", p.provider.ID, err)
	}
	if err == nil || p.ownNS || p.localNS == "" {
		return err == nil || p.ownNS, nil
	}
	secrets, err := p.controlPlaneSecrets(ctx)
	if err == nil && len(secrets) == 0 {
		started, err := p.startedHere(ctx)
		return started, err
	}
	if p.unadmitted(err) {
		return p.connectedHere(ctx)
	}
	return len(secrets) > 0, err
}

// partsThere lists the objects that Establish makes on the provider. If our account may not read networks, partsThere
// lists no objects of a network: the account is from an earlier release, which made no networks.
func (p *peering) partsThere(ctx context.Context) (objects []client.Object, err error) {
	tenant, err := p.tenant(ctx)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil {
		objects = append(objects, tenant)
	}
	err = p.remote.do(ctx, "find our nonce", func(provider client.Client) error {
		nonce, err := nonceSecret(ctx, provider, p.remoteNS, consts.NonceSecretLabelKey, nonceName, p.self.id)
		if err == nil {
			objects = append(objects, nonce)
		}
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		return nil, err
	}
	_, there := p.halves()
	if err := there.read(ctx); err != nil && !forbidden(err) {
		return nil, err
	}
	for _, kind := range made {
		if there.objects[kind] != nil {
			objects = append(objects, there.objects[kind])
		}
	}
	err = p.remote.do(ctx, "find our tenant namespace", func(provider client.Client) error {
		namespace, err := tenantNamespace(ctx, provider, p.self.id)
		if err == nil {
			objects = append(objects, namespace)
		}
		return client.IgnoreNotFound(err)
	})
	return objects, err
}

// RemoveLeftover deletes a slice on the provider and the slice's certificate, if the slice has not changed since it
// was listed.
func (b *Backend) RemoveLeftover(ctx context.Context, orphan fleet.Orphan) error {
	a := b.attempt(orphan.Attempt)
	err := a.locateBoth(ctx)
	here := false
	if err == nil {
		here, err = a.sliceHere(ctx, a.name())
	}
	if err == nil && !here && a.remoteNS != "" {
		err = a.remote.do(ctx, "delete a slice that is left", func(provider client.Client) error {
			var slice authv1beta1.ResourceSlice
			err := provider.Get(ctx, client.ObjectKey{Namespace: a.remoteNS, Name: a.name()}, &slice)
			if err != nil || string(slice.UID) != orphan.UID || !a.abandoned(&slice) {
				return client.IgnoreNotFound(err)
			}
			if err := deleteAsRead(ctx, provider, &slice); err != nil {
				return err
			}
			return deleteCertificate(ctx, provider, a.remoteNS, slice.Name)
		})
	}
	if err != nil {
		return fmt.Errorf("remove %s from provider %s: %w", orphan.Object, a.Provider.ID, err)
	}
	return nil
}

// abandoned reports whether a slice on the provider belongs to this attempt, was made by this cluster and not by a
// clone, and is not being deleted.
func (a *attempt) abandoned(slice *authv1beta1.ResourceSlice) bool {
	return slice.DeletionTimestamp == nil && a.mine(slice) && a.signedByUs(slice) &&
		slice.Labels[consts.ReplicationOriginLabel] == a.self.id
}

// mapGone removes the provider's copy of a NamespaceMap that no longer exists here. crd-replicator leaves it behind,
// as it leaves slices. An account of an earlier release lacks the permission for this; mapGone then leaves the copy
// and does not wait.
func (p *peering) mapGone(ctx context.Context) (message string, err error) {
	if p.remoteNS == "" {
		return "", nil
	}
	err = p.remote.do(ctx, "look for a NamespaceMap that is left", func(provider client.Client) error {
		var maps offloadingv1beta1.NamespaceMapList
		err := provider.List(ctx, &maps, client.InNamespace(p.remoteNS),
			client.MatchingLabels{consts.ReplicationOriginLabel: p.self.id})
		if err != nil || len(maps.Items) == 0 {
			return err
		}
		left := &maps.Items[0]
		message = fmt.Sprintf("NamespaceMap %s/%s is being removed on the provider", left.Namespace, left.Name)
		if left.DeletionTimestamp != nil {
			return nil
		}
		return deleteAsRead(ctx, provider, left)
	})
	if forbidden(err) {
		return "", nil
	}
	return message, err
}
