package liqo

import (
	"context"
	"fmt"
	"slices"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// peering contains the relation with one provider while one verb works on it.
type peering struct {
	*Backend
	provider fleet.Provider
	remote   *remote
	started  time.Time // when the verb was first called, see backend.StartTime

	self          identity // of the consumer
	localNS       string   // tenant namespace on the consumer; "" before it exists
	ownNS         bool     // localNS is ours
	nsTerminating bool     // localNS is being removed
	remoteNS      string   // tenant namespace on the provider; "" before it exists
}

func (b *Backend) peering(provider fleet.Provider) *peering {
	p := &peering{Backend: b, provider: provider, started: time.Now()}
	p.remote = &remote{b: b, provider: provider, same: p.sameProvider}
	return p
}

// hasLasted reports whether the verb was first called longer ago than the given duration.
func (p *peering) hasLasted(longer time.Duration) bool { return time.Since(p.started) > longer }

// labels returns the labels of each object that we make for the peering, on the consumer and on the provider.
func (p *peering) labels() map[string]string { return p.ours(p.self.id) }

// signed returns the labels of our objects on the provider, which include the consumer's UID.
func (p *peering) signed() map[string]string {
	return with(p.labels(), map[string]string{labelConsumerUID: p.self.uid})
}

func (p *peering) mine(object client.Object) bool { return p.isOurs(p.self.id, object) }

// annotations returns the annotations of our objects on the consumer, which give recovery the reference to the
// credentials. Our objects on the provider do not have these annotations, because a reference into another cluster is
// useless there.
func (p *peering) annotations() map[string]string {
	return map[string]string{backend.AnnotationCredentials: backend.CredentialsText(p.provider.Credentials)}
}

// locate reads this cluster's identity and finds the provider's tenant namespace on the consumer.
func (p *peering) locate(ctx context.Context) (err error) {
	if p.self, err = p.consumer(ctx); err != nil {
		return err
	}
	p.localNS, p.ownNS, p.nsTerminating = "", false, false
	namespace, err := tenantNamespace(ctx, p.local, p.provider.ID)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("find tenant namespace of %s: %w", p.provider.ID, err)
	}
	if err == nil {
		p.localNS, p.ownNS, p.nsTerminating = namespace.Name, p.mine(namespace), namespace.DeletionTimestamp != nil
	}
	return nil
}

// locateRemote checks that our credentials lead to the right cluster, and finds our tenant namespace on that cluster.
func (p *peering) locateRemote(ctx context.Context) error {
	p.remoteNS = ""
	return p.remote.do(ctx, "find our tenant namespace", func(provider client.Client) error {
		namespace, err := tenantNamespace(ctx, provider, p.self.id)
		if err == nil {
			p.remoteNS = namespace.Name
		}
		return client.IgnoreNotFound(err)
	})
}

// locateBoth calls locate and locateRemote.
func (p *peering) locateBoth(ctx context.Context) error {
	if err := p.locate(ctx); err != nil {
		return err
	}
	return p.locateRemote(ctx)
}

// controlPlaneIdentity returns the Identity with which our Liqo acts on the provider. It returns NotFound when the
// Identity does not exist.
func (p *peering) controlPlaneIdentity(ctx context.Context) (*authv1beta1.Identity, error) {
	var found authv1beta1.Identity
	if p.localNS == "" {
		return nil, apierrors.NewNotFound(authv1beta1.IdentityGroupResource, p.identityName())
	}
	err := p.local.Get(ctx, client.ObjectKey{Namespace: p.localNS, Name: p.identityName()}, &found)
	return &found, err
}

func (p *peering) identityName() string { return "controlplane-" + p.provider.ID }

// controlPlaneSecrets lists the kubeconfigs that crd-replicator uses, of any owner.
func (p *peering) controlPlaneSecrets(ctx context.Context) ([]corev1.Secret, error) {
	if p.localNS == "" {
		return nil, nil
	}
	var found corev1.SecretList
	err := p.local.List(ctx, &found, client.InNamespace(p.localNS), client.MatchingLabels{
		consts.RemoteClusterID:      p.provider.ID,
		consts.IdentityTypeLabelKey: string(authv1beta1.ControlPlaneIdentityType),
	})
	if err != nil {
		return nil, fmt.Errorf("list kubeconfigs of %s: %w", p.provider.ID, err)
	}
	return found.Items, nil
}

// tenant returns the provider's Tenant for this cluster. It returns NotFound when the Tenant does not exist.
func (p *peering) tenant(ctx context.Context) (*authv1beta1.Tenant, error) {
	var found authv1beta1.TenantList
	absent := apierrors.NewNotFound(authv1beta1.TenantGroupResource, p.self.id)
	if p.remoteNS == "" {
		return nil, absent
	}
	err := p.remote.do(ctx, "read our Tenant", func(provider client.Client) error {
		return provider.List(ctx, &found, client.InNamespace(p.remoteNS),
			client.MatchingLabels{consts.RemoteClusterID: p.self.id})
	})
	if err != nil {
		return nil, err
	}
	if len(found.Items) == 0 {
		return nil, absent
	}
	return &found.Items[0], nil
}

// hasOtherOwner reports whether another owner made this peering. We must not write any part of such a peering.
func (p *peering) hasOtherOwner(ctx context.Context) (bool, error) {
	identity, err := p.controlPlaneIdentity(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Identity of %s: %w", p.provider.ID, err)
	}
	if err == nil && !p.mine(identity) {
		return true, nil
	}
	if err != nil { // a peering by hand has a kubeconfig Secret only (Liqo docs, peering via CRs)
		secrets, err := p.controlPlaneSecrets(ctx)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(secrets, func(s corev1.Secret) bool { return len(s.OwnerReferences) == 0 }) {
			return true, nil
		}
	}
	tenant, err := p.tenant(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	return err == nil && !p.mine(tenant), nil
}
