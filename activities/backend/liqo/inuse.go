package liqo

import (
	"context"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// inUse returns ErrInUse while a slice or a virtual node on the provider, of any owner, needs the peering. It also
// returns ErrInUse while the peering has a second direction, in which the provider is the consumer, because this
// direction shares namespaces with ours. It reads the API server and never a cache (I11). It does not read the
// ForeignCluster either, because the ForeignCluster may be hours out of date (reachable.go).
func (p *peering) inUse(ctx context.Context) error {
	var slices authv1beta1.ResourceSliceList
	if err := p.local.List(ctx, &slices, outgoing(p.provider.ID)); err != nil {
		return fmt.Errorf("list slices on %s: %w", p.provider.ID, err)
	}
	if n := len(slices.Items); n > 0 {
		return errorf(backend.ErrInUse, "%d ResourceSlice(s) on %s exist, such as %s/%s", n, p.provider.ID,
			slices.Items[0].Namespace, slices.Items[0].Name)
	}
	var nodes offloadingv1beta1.VirtualNodeList
	if err := p.local.List(ctx, &nodes, client.MatchingLabels{consts.RemoteClusterID: p.provider.ID}); err != nil {
		return fmt.Errorf("list virtual nodes on %s: %w", p.provider.ID, err)
	}
	if n := len(nodes.Items); n > 0 {
		return errorf(backend.ErrInUse, "%d VirtualNode(s) on %s exist, such as %s/%s", n, p.provider.ID,
			nodes.Items[0].Namespace, nodes.Items[0].Name)
	}
	var tenants authv1beta1.TenantList
	if err := p.local.List(ctx, &tenants, client.MatchingLabels{consts.RemoteClusterID: p.provider.ID}); err != nil {
		return fmt.Errorf("list Tenants of %s: %w", p.provider.ID, err)
	}
	if len(tenants.Items) > 0 {
		return errorf(backend.ErrInUse, "the peering with %s also serves the other direction: Tenant %s/%s exists",
			p.provider.ID, tenants.Items[0].Namespace, tenants.Items[0].Name)
	}
	return nil
}

// outgoing selects the objects that this cluster replicates to a provider. The remote cluster id alone would also
// match the objects that the provider replicates to this cluster.
func outgoing(provider string) client.MatchingLabels {
	return client.MatchingLabels{
		consts.ReplicationRequestedLabel:   consts.ReplicationRequestedLabelValue,
		consts.ReplicationDestinationLabel: provider,
	}
}

// inUseRemotely lists the slices on the provider that were replicated from this cluster and no longer exist here. It
// deletes our slices, and returns ErrInUse for a slice of another owner. The result left is the number of listed
// slices, or 0 if the credentials may not read slices.
func (p *peering) inUseRemotely(ctx context.Context) (left int, err error) {
	if p.remoteNS == "" {
		return 0, nil
	}
	err = p.remote.do(ctx, "look for our slices", func(provider client.Client) error {
		var slices authv1beta1.ResourceSliceList
		err := provider.List(ctx, &slices, client.InNamespace(p.remoteNS),
			client.MatchingLabels{consts.ReplicationOriginLabel: p.self.id})
		if apierrors.IsForbidden(err) {
			return nil
		}
		if err != nil {
			return err
		}
		left = len(slices.Items)
		for i := range slices.Items {
			if !p.mine(&slices.Items[i]) || p.cloned(&slices.Items[i]) {
				return errorf(backend.ErrInUse, "ResourceSlice %s/%s on %s is not ours", p.remoteNS, slices.Items[i].Name,
					p.provider.ID)
			}
		}
		for i := range slices.Items {
			if err := nodes.DeleteThis(ctx, provider, &slices.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return left, err
}
