package liqo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// List finds our attempts by the labels of their slices, virtual nodes and Nodes on the consumer.
func (b *Backend) List(ctx context.Context, group string) ([]backend.Found, error) {
	self, err := b.consumer(ctx)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	which := b.ours(self.id)
	if group != "" {
		which[backend.LabelGroup] = group
	}
	var slicesFound authv1beta1.ResourceSliceList
	var virtualFound offloadingv1beta1.VirtualNodeList
	var nodesFound corev1.NodeList
	for _, list := range []client.ObjectList{&slicesFound, &virtualFound, &nodesFound} {
		if err := b.local.List(ctx, list, which); err != nil {
			return nil, fmt.Errorf("list attempts: %w", err)
		}
	}
	found := findings{}
	for i := range slicesFound.Items {
		found.slice(&slicesFound.Items[i])
	}
	for i := range virtualFound.Items {
		found.virtual(&virtualFound.Items[i])
	}
	for i := range nodesFound.Items {
		found.node(&nodesFound.Items[i])
	}
	return found.sorted(), nil
}

// findings collects what exists by object name, which is unique over all attempts.
type findings map[string]*backend.Found

func (f findings) slice(slice *authv1beta1.ResourceSlice) {
	if entry := f.of(slice); entry != nil {
		entry.Slice = true
		entry.Booking = bookingOf(slice)
		entry.Attempt.Provider.Credentials = credentialsOf(slice)
	}
}

func (f findings) virtual(virtual *offloadingv1beta1.VirtualNode) {
	if entry := f.of(virtual); entry != nil {
		entry.Virtual = true
		entry.Marked = virtual.Annotations[backend.AnnotationStamp] == entry.Attempt.InstanceID()
	}
}

func (f findings) node(node *corev1.Node) {
	if entry := f.of(node); entry != nil {
		entry.Node = true
		entry.Ready, _ = nodeReady(node)
		entry.Stamped = node.Spec.ProviderID == entry.Attempt.InstanceID()
	}
}

// of is the entry that the object belongs to; nil when its name is not what its labels say, and it is not ours then.
func (f findings) of(object client.Object) *backend.Found {
	attempt, ok := attemptOf(object)
	if !ok {
		return nil
	}
	entry := f[object.GetName()]
	if entry == nil {
		entry = &backend.Found{Attempt: attempt}
		f[object.GetName()] = entry
	}
	entry.Leaving = entry.Leaving || object.GetDeletionTimestamp() != nil
	return entry
}

func attemptOf(object client.Object) (backend.Attempt, bool) {
	labels := object.GetLabels()
	number, err := strconv.Atoi(labels[backend.LabelAttempt])
	attempt := backend.Attempt{
		Group:    labels[backend.LabelGroup],
		Instance: labels[backend.LabelInstance],
		Number:   number,
		Provider: backend.Provider{ID: labels[consts.RemoteClusterID]},
	}
	return attempt, err == nil && attempt.ObjectName() == object.GetName()
}

func (f findings) sorted() []backend.Found {
	all := make([]backend.Found, 0, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		all = append(all, *f[name])
	}
	return all
}

func bookingOf(object client.Object) *backend.Booking {
	var booking backend.Booking
	if json.Unmarshal([]byte(object.GetAnnotations()[backend.AnnotationBooking]), &booking) != nil {
		return nil
	}
	return &booking
}

func credentialsOf(object client.Object) (credentials fleet.Credentials) {
	if json.Unmarshal([]byte(object.GetAnnotations()[backend.AnnotationCredentials]), &credentials) != nil {
		return fleet.Credentials{}
	}
	return credentials
}

// Peers finds our peerings, also those half made or half removed, by whatever of them is on the consumer. What lies outside
// of the tenant namespace of its peer was not put there by us: whoever may write Secrets somewhere does not thereby get to
// choose a peering's credentials.
func (b *Backend) Peers(ctx context.Context) ([]backend.Provider, error) {
	self, err := b.consumer(ctx)
	if err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	var namespaces corev1.NamespaceList
	var nonces corev1.SecretList
	var identities authv1beta1.IdentityList
	for _, list := range []client.ObjectList{&nonces, &identities} {
		if err := b.local.List(ctx, list, b.ours(self.id)); err != nil {
			return nil, fmt.Errorf("list peerings: %w", err)
		}
	}
	// Last, so that those of a peering that is being made are there.
	if err := b.local.List(ctx, &namespaces, client.HasLabels{consts.TenantNamespaceLabel}); err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	peers := map[string]backend.Provider{}
	tenants := map[string]string{}       // namespace -> peer
	note := func(object client.Object) { // the Identity last: it is refreshed whenever the reference changes
		id := object.GetLabels()[consts.RemoteClusterID]
		if namespace := object.GetNamespace(); namespace != "" && tenants[namespace] != id {
			return
		}
		peer := backend.Provider{ID: id, Credentials: credentialsOf(object)}
		if peer.Credentials == (fleet.Credentials{}) {
			peer.Credentials = peers[id].Credentials
		}
		if id != "" {
			peers[id] = peer
		}
	}
	for i := range namespaces.Items {
		tenants[namespaces.Items[i].Name] = namespaces.Items[i].Labels[consts.RemoteClusterID]
		if b.isOurs(self.id, &namespaces.Items[i]) {
			note(&namespaces.Items[i])
		}
	}
	for i := range nonces.Items {
		note(&nonces.Items[i])
	}
	for i := range identities.Items {
		note(&identities.Items[i])
	}
	return slices.SortedFunc(maps.Values(peers), func(a, b backend.Provider) int { return cmp.Compare(a.ID, b.ID) }), nil
}
