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
		if slice := &slicesFound.Items[i]; !isReplica(slice) {
			if f := found.of(slice); f != nil {
				f.Slice = true
				f.Booking = bookingOf(slice)
				f.Attempt.Provider.Credentials = credentialsOf(slice)
			}
		}
	}
	for i := range virtualFound.Items {
		if f := found.of(&virtualFound.Items[i]); f != nil {
			f.Virtual = true
			f.Marked = virtualFound.Items[i].Annotations[backend.AnnotationStamp] == f.Attempt.InstanceID()
		}
	}
	for i := range nodesFound.Items {
		if f := found.of(&nodesFound.Items[i]); f != nil {
			f.Node = true
			f.Ready, _ = nodeReady(&nodesFound.Items[i])
			f.Stamped = nodesFound.Items[i].Spec.ProviderID == f.Attempt.InstanceID()
		}
	}
	return found.sorted(), nil
}

// findings collects what exists by object name, which is unique over all attempts.
type findings map[string]*backend.Found

// of is the entry that the object belongs to; nil when its name is not what its labels say, and it is not ours then.
func (f findings) of(object client.Object) *backend.Found {
	labels := object.GetLabels()
	number, err := strconv.Atoi(labels[backend.LabelAttempt])
	attempt := backend.Attempt{
		Group:    labels[backend.LabelGroup],
		Instance: labels[backend.LabelInstance],
		Number:   number,
		Provider: backend.Provider{ID: labels[consts.RemoteClusterID]},
	}
	if err != nil || attempt.ObjectName() != object.GetName() {
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

// Peers finds our peerings, also those half made or half removed, by whatever of them is on the consumer.
func (b *Backend) Peers(ctx context.Context) ([]backend.Provider, error) {
	self, err := b.consumer(ctx)
	if err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	var namespaces corev1.NamespaceList
	var nonces corev1.SecretList
	var identities authv1beta1.IdentityList
	for _, list := range []client.ObjectList{&namespaces, &nonces, &identities} {
		if err := b.local.List(ctx, list, b.ours(self.id)); err != nil {
			return nil, fmt.Errorf("list peerings: %w", err)
		}
	}
	peers := map[string]backend.Provider{}
	note := func(object client.Object) { // the Identity last: it is refreshed whenever the reference changes
		id := object.GetLabels()[consts.RemoteClusterID]
		peer := backend.Provider{ID: id, Credentials: credentialsOf(object)}
		if peer.Credentials == (fleet.Credentials{}) {
			peer.Credentials = peers[id].Credentials
		}
		if id != "" {
			peers[id] = peer
		}
	}
	for i := range namespaces.Items {
		note(&namespaces.Items[i])
	}
	for i := range nonces.Items {
		note(&nonces.Items[i])
	}
	for i := range identities.Items {
		note(&identities.Items[i])
	}
	return slices.SortedFunc(maps.Values(peers), func(a, b backend.Provider) int { return cmp.Compare(a.ID, b.ID) }), nil
}
