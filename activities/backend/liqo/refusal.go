package liqo

import (
	"context"
	"fmt"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// The administrators of a provider refuse this cluster through its Tenant. A cordoned or drained Tenant stays on the
// provider, so even a hub that has lost its history finds the refusal there. A deleted Tenant leaves no trace, so a
// ConfigMap in the tenant namespace on the consumer records the refusal for RefusedFor.
const (
	refusedName  = "liqo-autoscaler-refused"
	refusedUntil = "until" // RFC 3339
)

// refuse returns the error of a refusing provider.
func refuse(r fleet.ProviderRefusal) error {
	return &kindError{Kind: &backend.RefusingError{ProviderRefusal: r}, Message: shorten.Words(r.Reason, maxWords)}
}

// Refusal reads whether the provider refuses this cluster now.
func (b *Backend) Refusal(ctx context.Context, provider fleet.Provider) (*fleet.ProviderRefusal, error) {
	p := b.peering(provider)
	err := p.locateBoth(ctx)
	var found *fleet.ProviderRefusal
	if err == nil {
		found, err = p.refusal(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("ask whether provider %s refuses: %w", provider.ID, err)
	}
	return found, nil
}

// refusal returns the provider's present refusal, or nil. The caller must have called locate and locateRemote. When
// we remove a peering, we delete the Identity before the Tenant. So if the Tenant is missing while our Identity
// exists, the provider deleted the Tenant. refusal then records the deletion.
func (p *peering) refusal(ctx context.Context) (*fleet.ProviderRefusal, error) {
	found, err := p.recordedRefusal(ctx)
	if found != nil || err != nil {
		return found, err
	}
	tenant, err := p.tenant(ctx)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil && tenant.DeletionTimestamp == nil {
		return refusingOf(tenant), nil
	}
	identity, err := p.controlPlaneIdentity(ctx)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Identity of %s: %w", p.provider.ID, err)
	}
	if err != nil || identity.DeletionTimestamp != nil || !p.mine(identity) || repinned(identity) {
		return nil, nil
	}
	return p.recordRefusal(ctx, time.Now().Add(p.config.RefusedFor))
}

// refusingOf returns the refusal that the Tenant's condition expresses, or nil.
func refusingOf(tenant *authv1beta1.Tenant) *fleet.ProviderRefusal {
	kind := fleet.RefusingCordoned
	switch tenant.Spec.TenantCondition {
	case authv1beta1.TenantConditionCordoned:
	case authv1beta1.TenantConditionDrained:
		kind = fleet.RefusingDrained
	default:
		return nil
	}
	reason := fmt.Sprintf("the provider has set our Tenant %s/%s to %s", tenant.Namespace, tenant.Name,
		tenant.Spec.TenantCondition)
	return &fleet.ProviderRefusal{Kind: kind, Reason: shorten.Words(reason, maxWords)}
}

// recordedRefusal returns the refusal that the consumer has recorded, until it expires.
func (p *peering) recordedRefusal(ctx context.Context) (*fleet.ProviderRefusal, error) {
	record, err := p.refusalRecord(ctx)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if found := refusalIn(record); found != nil && !found.Over(time.Now()) {
		return found, nil
	}
	return nil, nil
}

// refusalRecord returns the ConfigMap that records a refusal. It returns NotFound when we have not made one.
func (p *peering) refusalRecord(ctx context.Context) (*corev1.ConfigMap, error) {
	var record corev1.ConfigMap
	absent := apierrors.NewNotFound(corev1.Resource("configmaps"), refusedName)
	if p.localNS == "" || p.nsTerminating {
		return nil, absent
	}
	err := p.local.Get(ctx, client.ObjectKey{Namespace: p.localNS, Name: refusedName}, &record)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the noted refusal of %s: %w", p.provider.ID, err)
	}
	if err != nil || !p.mine(&record) {
		return nil, absent
	}
	return &record, nil
}

// refusalIn returns the refusal that a ConfigMap from refusalRecord contains, or nil when the end time of the refusal
// cannot be parsed.
func refusalIn(record *corev1.ConfigMap) *fleet.ProviderRefusal {
	until, err := time.Parse(time.RFC3339, record.Data[refusedUntil])
	if err != nil {
		return nil
	}
	reason := fmt.Sprintf("the provider has removed its Tenant for this cluster, and is left alone until %s; to end that "+
		"now, delete ConfigMap %s/%s", until.UTC().Format(time.RFC3339), record.Namespace, record.Name)
	return &fleet.ProviderRefusal{Kind: fleet.RefusingRemoved, Until: until, Reason: reason}
}

// recordRefusal records a refusal on the consumer until the given time.
func (p *peering) recordRefusal(ctx context.Context, until time.Time) (*fleet.ProviderRefusal, error) {
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.localNS, Name: refusedName, Annotations: p.annotations(),
			Labels: with(p.labels(), map[string]string{backend.LabelRefused: string(fleet.RefusingRemoved),
				consts.RemoteClusterID: p.provider.ID}),
		},
		Data: map[string]string{refusedUntil: until.UTC().Format(time.RFC3339)},
	}
	err := p.local.Create(ctx, record)
	if apierrors.IsAlreadyExists(err) { // the ConfigMap of an earlier, expired refusal exists
		err = nodes.MergePatch(ctx, p.local, record, map[string]any{"data": record.Data})
	}
	if err != nil {
		return nil, fmt.Errorf("note the refusal of %s: %w", p.provider.ID, err)
	}
	return refusalIn(record), nil
}

// removeExpiredRefusal removes the record of an expired refusal.
func (p *peering) removeExpiredRefusal(ctx context.Context) error {
	record, err := p.refusalRecord(ctx)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := nodes.DeleteThis(ctx, p.local, record); err != nil {
		return fmt.Errorf("forget the refusal of %s: %w", p.provider.ID, err)
	}
	return nil
}

// keep marks an object on the provider as a record of the provider's refusal. If kind is empty, it removes the mark.
// An object that our credentials may not change stays as it is.
func (p *peering) keep(ctx context.Context, object client.Object, kind fleet.RefusingKind) error {
	if !p.mine(object) || object.GetLabels()[backend.LabelRefused] == string(kind) {
		return nil
	}
	var mark any
	if kind != "" {
		mark = string(kind)
	}
	err := p.remote.do(ctx, "mark what records the refusal", func(provider client.Client) error {
		return nodes.MergePatch(ctx, provider, object, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{backend.LabelRefused: mark}},
		})
	})
	if forbidden(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// keepHandshake marks the nonce and the namespace of a Tenant that stays, because Liqo verifies the Tenant repeatedly
// with that nonce. An empty kind removes the marks.
func (p *peering) keepHandshake(ctx context.Context, kind fleet.RefusingKind) error {
	var objects []client.Object
	err := p.remote.do(ctx, "find our nonce", func(provider client.Client) error {
		namespace, err := tenantNamespace(ctx, provider, p.self.id)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		objects = append(objects, namespace)
		nonce, err := nonceSecret(ctx, provider, namespace.Name, consts.NonceSecretLabelKey, nonceName, p.self.id)
		if err == nil {
			objects = append(objects, nonce)
		}
		return client.IgnoreNotFound(err)
	})
	for _, object := range objects {
		if err == nil {
			err = p.keep(ctx, object, kind)
		}
	}
	return err
}
