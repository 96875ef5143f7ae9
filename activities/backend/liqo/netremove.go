package liqo

import (
	"context"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// networkGone removes our objects of the network. It reports done when these objects and all dependent objects are
// gone. It removes our Configuration last, because recovery finds the network by the Configuration.
func (p *peering) networkGone(ctx context.Context) (bool, string, error) {
	n := &network{peering: p}
	err := p.locateBoth(ctx)
	if err == nil {
		err = n.survey(ctx)
	}
	if err != nil || !n.here.owns() && !n.there.owns() {
		return err == nil, "", err
	}
	if err := p.networkInUse(ctx); err != nil {
		return false, "", err
	}
	return n.remove(ctx)
}

func (n *network) remove(ctx context.Context) (bool, string, error) {
	halves := []*half{n.there, n.here}
	for _, kind := range []string{kindClient, kindServer, kindKey} {
		for _, h := range halves {
			if err := h.remove(ctx, kind); err != nil {
				return false, "", err
			}
		}
	}
	for _, h := range halves {
		if left := h.left(); left != nil {
			return false, fmt.Sprintf("%s %s/%s is being removed on %s", left.GetKind(), left.GetNamespace(), left.GetName(),
				h.where), nil
		}
	}
	for _, h := range halves {
		if h.objects[kindConfiguration] != nil {
			return false, "the Configuration is being removed on " + h.where, h.remove(ctx, kindConfiguration)
		}
	}
	return true, "", nil
}

// left returns a remaining object of the gateways, or nil. Liqo removes a Connection with its gateway, so the
// Connection does not count while a gateway of another owner exists.
func (h *half) left() *unstructured.Unstructured {
	kinds := []string{kindClient, kindServer, kindKey}
	if h.foreign == "" {
		kinds = append(kinds, kindConnection)
	}
	for _, kind := range kinds {
		if h.objects[kind] != nil {
			return h.objects[kind]
		}
	}
	return nil
}

// remove deletes our object of the kind, if it exists.
func (h *half) remove(ctx context.Context, kind string) error {
	object := h.objects[kind]
	if object == nil || object.GetDeletionTimestamp() != nil {
		return nil
	}
	return h.do(ctx, "delete the network's "+kind, func(cluster client.Client) error {
		return nodes.DeleteThis(ctx, cluster, object)
	})
}

// networkInUse returns ErrInUse while the network serves a peering of any owner with the provider, in either direction
// (I11).
func (p *peering) networkInUse(ctx context.Context) error {
	if err := p.inUse(ctx); err != nil {
		return err
	}
	var identities authv1beta1.IdentityList
	if err := p.local.List(ctx, &identities, client.MatchingLabels{consts.RemoteClusterID: p.provider.ID}); err != nil {
		return fmt.Errorf("list Identities of %s: %w", p.provider.ID, err)
	}
	for i := range identities.Items {
		if !p.mine(&identities.Items[i]) {
			return errorf(backend.ErrInUse, "the network with %s is ours and serves others: Identity %s/%s exists",
				p.provider.ID,
				identities.Items[i].Namespace, identities.Items[i].Name)
		}
	}
	tenant, err := p.tenant(ctx)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && !p.mine(tenant) {
		return errorf(backend.ErrInUse, "the network with %s is ours and serves others: Tenant %s/%s exists there",
			p.provider.ID, tenant.Namespace, tenant.Name)
	}
	return nil
}

// connectedHere reports whether any object of this cluster's half of the network is ours.
func (p *peering) connectedHere(ctx context.Context) (bool, error) {
	here, _ := p.halves()
	err := here.read(ctx)
	return err == nil && here.owns(), err
}
