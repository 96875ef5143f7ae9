package liqo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// List finds the attempts of this hub on the consumer. It finds them by the labels of their slices and virtual nodes,
// and by the annotations of their Nodes.
func (b *Backend) List(ctx context.Context, scope backend.Scope) ([]fleet.Found, error) {
	self, err := b.consumer(ctx)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	found, err := b.find(ctx, self, scope)
	if err != nil {
		return nil, err
	}
	if scope.Provider != "" && found.anyIncomplete() { // the attempt may have objects with another provider's label
		if found, err = b.find(ctx, self, backend.Scope{Group: scope.Group}); err != nil {
			return nil, err
		}
	}
	if err := b.findNodes(ctx, self, found); err != nil {
		return nil, err
	}
	if err := b.findCredentials(ctx, self, found); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found.sorted(), func(f fleet.Found) bool { return !scope.Contains(f.Attempt) }), nil
}

// find lists the objects whose labels match the scope.
func (b *Backend) find(ctx context.Context, self identity, scope backend.Scope) (findings, error) {
	which := client.MatchingLabels(with(b.ours(self.id), within(scope)))
	found := findings{}
	for _, kind := range []struct {
		list  client.ObjectList
		which client.ListOption
	}{
		{&authv1beta1.ResourceSliceList{}, which},
		{&offloadingv1beta1.VirtualNodeList{}, which},
		{&corev1.NodeList{}, nodesOf(scope)},
	} {
		err := b.local.List(ctx, kind.list, kind.which)
		if err == nil {
			err = meta.EachListItem(kind.list, func(object runtime.Object) error {
				found.add(object.(client.Object), b.ours(self.id))
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("list attempts: %w", err)
		}
	}
	return found, nil
}

// maxNodeReads is the maximum number of Nodes that List reads by name concurrently.
const maxNodeReads = 16

// findNodes reads a Node by name if its virtual node is marked and no list has shown the Node. Such a Node may exist
// without our label or annotations: any user may remove these, and the Node's pods still run.
func (b *Backend) findNodes(ctx context.Context, self identity, found findings) error {
	var missing []*fleet.Found
	for _, entry := range found {
		if entry.Virtual && entry.Marked && !entry.Node {
			missing = append(missing, entry)
		}
	}
	failed := make([]error, len(missing))
	wait.ForAll(missing, maxNodeReads, func(n int, entry *fleet.Found) {
		a := b.attempt(entry.Attempt)
		a.self = self
		node, err := a.node(ctx, &offloadingv1beta1.VirtualNode{})
		if err == nil {
			nodes.Describe(entry, node)
		}
		failed[n] = client.IgnoreNotFound(err)
	})
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("list attempts: %w", err)
	}
	return nil
}

// findCredentials adds the credentials of the peering to the attempts without a virtual node, because none of their
// other objects carries credentials.
func (b *Backend) findCredentials(ctx context.Context, self identity, found findings) error {
	var identities authv1beta1.IdentityList
	listed := false
	for _, entry := range found {
		if entry.Attempt.Provider.Credentials != (fleet.Credentials{}) {
			continue
		}
		if !listed {
			listed = true
			if err := b.local.List(ctx, &identities, b.ours(self.id)); err != nil {
				return fmt.Errorf("list attempts: %w", err)
			}
		}
		for i := range identities.Items {
			if identities.Items[i].Labels[consts.RemoteClusterID] == entry.Attempt.Provider.ID {
				entry.Attempt.Provider.Credentials = backend.CredentialsOf(identities.Items[i].Annotations)
			}
		}
	}
	return nil
}

// findings collects the existing objects of each attempt. The key is the name that all objects of an attempt have; no
// two attempts have the same name. Add slices first, then virtual nodes, then Nodes: a Node is compared with the
// booking on its virtual node.
type findings map[string]*fleet.Found

// add adds one object. It ignores an object that is not owned by us: an object without our tags, or with tags that
// contradict its name.
func (f findings) add(object client.Object, ours map[string]string) {
	attempt, ok := attemptOf(object)
	if !ok || !backend.Carries(tags(object), ours) {
		return
	}
	entry := f[object.GetName()]
	if entry == nil {
		entry = &fleet.Found{Attempt: attempt}
		f[object.GetName()] = entry
	}
	entry.Terminating = entry.Terminating || object.GetDeletionTimestamp() != nil
	switch object := object.(type) {
	case *authv1beta1.ResourceSlice:
		entry.Slice = true
	case *offloadingv1beta1.VirtualNode:
		entry.Virtual = true
		entry.Attempt.Provider.ID = attempt.Provider.ID // another provider may still have a slice of this name
		entry.Booking = backend.BookingOf(object.Annotations)
		entry.Attempt.Provider.Credentials = backend.CredentialsOf(object.Annotations)
		entry.Marked = object.Annotations[backend.AnnotationStamp] == entry.Attempt.InstanceID()
	case *corev1.Node:
		nodes.Describe(entry, object)
	}
}

// anyIncomplete reports whether an attempt lacks a slice, a virtual node or a Node.
func (f findings) anyIncomplete() bool {
	for _, entry := range f {
		if !entry.Slice || !entry.Virtual || !entry.Node {
			return true
		}
	}
	return false
}

func attemptOf(object client.Object) (fleet.Attempt, bool) {
	attempt, ok := backend.AttemptOf(tags(object))
	attempt.Provider.ID = object.GetLabels()[consts.RemoteClusterID]
	return attempt, ok && attempt.ObjectName() == object.GetName()
}

func (f findings) sorted() []fleet.Found {
	all := make([]fleet.Found, 0, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		all = append(all, *f[name])
	}
	return all
}

// Peers finds our peerings by their objects on the consumer, including peerings that are half made or half removed.
// It ignores objects outside the tenant namespace of their provider. Otherwise a user with permission to write
// Secrets in another namespace could choose the credentials of a peering.
func (b *Backend) Peers(ctx context.Context, provider string) ([]fleet.Provider, error) {
	self, err := b.consumer(ctx)
	if err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	var namespaces corev1.NamespaceList
	var identities authv1beta1.IdentityList
	ofProvider := within(backend.Scope{Provider: provider})
	ours := client.MatchingLabels(with(b.ours(self.id), ofProvider))
	if err := b.local.List(ctx, &identities, ours); err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	networks, err := listOf(ctx, b.local, networking.WithKind(kindConfiguration), ours)
	if err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	// The namespaces are listed last. Otherwise a peering that is made between the lists would have an object whose
	// namespace is not listed, and this object would be ignored.
	if err := b.local.List(ctx, &namespaces, client.HasLabels{consts.TenantNamespaceLabel}, ofProvider); err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	found := peers{tenants: map[string]string{}, byID: map[string]fleet.Provider{}}
	for i := range namespaces.Items {
		found.tenants[namespaces.Items[i].Name] = namespaces.Items[i].Labels[consts.RemoteClusterID]
		if b.isOurs(self.id, &namespaces.Items[i]) {
			found.add(&namespaces.Items[i])
		}
	}
	for i := range networks {
		found.add(&networks[i])
	}
	for i := range namespaces.Items {
		if err := b.addRecordedPeers(ctx, self, found, &namespaces.Items[i]); err != nil {
			return nil, fmt.Errorf("list peerings: %w", err)
		}
	}
	for i := range identities.Items { // last: Establish updates an Identity whenever the reference changes
		found.add(&identities.Items[i])
	}
	return found.sorted(), nil
}

// peers collects the providers to which objects on the consumer belong.
type peers struct {
	tenants map[string]string // namespace -> provider id
	byID    map[string]fleet.Provider
}

// add records the object's provider. If several objects refer to credentials, the reference of the last one applies.
func (p peers) add(object client.Object) {
	id := object.GetLabels()[consts.RemoteClusterID]
	namespace := object.GetNamespace()
	if id == "" || namespace != "" && p.tenants[namespace] != id {
		return
	}
	p.byID[id] = fleet.Provider{ID: id, Refusing: p.byID[id].Refusing,
		Credentials: cmp.Or(backend.CredentialsOf(object.GetAnnotations()), p.byID[id].Credentials)}
}

// addRecordedPeers adds the provider of a tenant namespace that contains one of two other records. The first is the
// ConfigMap that records the removal of our Tenant. The second is a nonce of a partly made peering, in a namespace
// that is not ours.
func (b *Backend) addRecordedPeers(ctx context.Context, self identity, found peers, namespace *corev1.Namespace) error {
	p := b.peering(fleet.Provider{ID: found.tenants[namespace.Name]})
	p.self, p.localNS, p.ownNS = self, namespace.Name, b.isOurs(self.id, namespace)
	p.nsTerminating = namespace.DeletionTimestamp != nil
	if p.nsTerminating {
		return nil
	}
	record, err := p.refusalRecord(ctx)
	if b.unadmitted(err) {
		if p.ownNS { // the permissions were removed: admit grants them for the next call
			return errors.Join(err, p.admit(ctx, p.localNS))
		}
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		found.add(record)
		if recorded := refusalIn(record); recorded != nil && !recorded.Over(time.Now()) {
			peer := found.byID[p.provider.ID]
			peer.ID, peer.Refusing = p.provider.ID, recorded
			found.byID[p.provider.ID] = peer
		}
	}
	if p.ownNS {
		return nil
	}
	var nonces corev1.SecretList
	if err := b.local.List(ctx, &nonces, client.InNamespace(p.localNS), b.ours(self.id)); err != nil {
		return err
	}
	for i := range nonces.Items {
		found.add(&nonces.Items[i])
	}
	return nil
}

func (p peers) sorted() []fleet.Provider {
	return slices.SortedFunc(maps.Values(p.byID), func(a, b fleet.Provider) int { return cmp.Compare(a.ID, b.ID) })
}
