package liqo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/template"
)

// List finds the attempts of this hub by the labels of their slices and virtual nodes on the consumer, and the
// annotations of their Nodes.
func (b *Backend) List(ctx context.Context, group string) ([]fleet.Found, error) {
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
	for _, kind := range []struct {
		list  client.ObjectList
		which client.ListOption
	}{{&slicesFound, which}, {&virtualFound, which}, {&nodesFound, nodesOf(group)}} {
		if err := b.local.List(ctx, kind.list, kind.which); err != nil {
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
		if b.isOurs(self.id, &nodesFound.Items[i]) {
			found.node(&nodesFound.Items[i])
		}
	}
	if err := b.findCredentials(ctx, self, found); err != nil {
		return nil, err
	}
	return found.sorted(), nil
}

// findCredentials completes attempts that have no virtual node yet, or no longer: over their peering.
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
				entry.Attempt.Provider.Credentials = credentialsOf(&identities.Items[i])
			}
		}
	}
	return nil
}

// findings collects what exists by object name, which is unique over all attempts: slices, then virtual nodes, then
// Nodes, which are compared with what was booked.
type findings map[string]*fleet.Found

func (f findings) slice(slice *authv1beta1.ResourceSlice) {
	if entry := f.of(slice); entry != nil {
		entry.Slice = true
	}
}

func (f findings) virtual(virtual *offloadingv1beta1.VirtualNode) {
	if entry := f.of(virtual); entry != nil {
		entry.Virtual = true
		entry.Booking = bookingOf(virtual)
		entry.Attempt.Provider.Credentials = credentialsOf(virtual)
		entry.Marked = virtual.Annotations[backend.AnnotationStamp] == entry.Attempt.InstanceID()
	}
}

func (f findings) node(node *corev1.Node) {
	if entry := f.of(node); entry != nil {
		entry.Node = true
		entry.Ready, _ = nodes.Ready(node)
		entry.Starting = nodes.Starting(node)
		entry.Cordoned = backend.IsCordoned(node)
		entry.Stamped = node.Spec.ProviderID == entry.Attempt.InstanceID()
		template.Compare(entry, node)
	}
}

// of returns the entry that the object belongs to, or nil when the object's name does not match its tags: then it is
// not owned by us.
func (f findings) of(object client.Object) *fleet.Found {
	attempt, ok := attemptOf(object)
	if !ok {
		return nil
	}
	entry := f[object.GetName()]
	if entry == nil {
		entry = &fleet.Found{Attempt: attempt}
		f[object.GetName()] = entry
	}
	entry.Terminating = entry.Terminating || object.GetDeletionTimestamp() != nil
	return entry
}

func attemptOf(object client.Object) (fleet.Attempt, bool) {
	has := tags(object)
	number, err := strconv.Atoi(has[backend.LabelAttempt])
	attempt := fleet.Attempt{
		Group:    has[backend.LabelGroup],
		Instance: has[backend.LabelInstance],
		Number:   number,
		Provider: fleet.Provider{ID: object.GetLabels()[consts.RemoteClusterID]},
	}
	return attempt, err == nil && attempt.ObjectName() == object.GetName()
}

func (f findings) sorted() []fleet.Found {
	all := make([]fleet.Found, 0, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		all = append(all, *f[name])
	}
	return all
}

func bookingOf(object client.Object) *fleet.Booking {
	var booking fleet.Booking
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

// Peers finds our peerings by their objects on the consumer, including peerings that are half made or half removed. It
// ignores objects outside the tenant namespace of their peer: permission to write Secrets in another namespace must not
// allow choosing a peering's credentials.
func (b *Backend) Peers(ctx context.Context) ([]fleet.Provider, error) {
	self, err := b.consumer(ctx)
	if err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	var namespaces corev1.NamespaceList
	var identities authv1beta1.IdentityList
	if err := b.local.List(ctx, &identities, b.ours(self.id)); err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	networks, err := listOf(ctx, b.local, networking.WithKind(kindConfiguration), b.ours(self.id))
	if err != nil {
		return nil, fmt.Errorf("list peerings: %w", err)
	}
	// Listed last, so that the namespace of a peering that is being made exists already.
	if err := b.local.List(ctx, &namespaces, client.HasLabels{consts.TenantNamespaceLabel}); err != nil {
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
		if err := b.addReminders(ctx, self, found, &namespaces.Items[i]); err != nil {
			return nil, fmt.Errorf("list peerings: %w", err)
		}
	}
	for i := range identities.Items { // last: an Identity is refreshed whenever the reference changes
		found.add(&identities.Items[i])
	}
	return found.sorted(), nil
}

// peers collects the providers that objects on the consumer belong to.
type peers struct {
	tenants map[string]string // namespace -> provider id
	byID    map[string]fleet.Provider
}

// add records the object's provider. The credentials reference of a later object replaces an earlier one.
func (p peers) add(object client.Object) {
	id := object.GetLabels()[consts.RemoteClusterID]
	namespace := object.GetNamespace()
	if id == "" || namespace != "" && p.tenants[namespace] != id {
		return
	}
	peer := fleet.Provider{ID: id, Credentials: credentialsOf(object), Refusing: p.byID[id].Refusing}
	if peer.Credentials == (fleet.Credentials{}) {
		peer.Credentials = p.byID[id].Credentials
	}
	p.byID[id] = peer
}

// addReminders records what else a tenant namespace remembers: that the provider has removed our Tenant, and, in a
// namespace that is not ours, a peering that was only begun.
func (b *Backend) addReminders(ctx context.Context, self identity, found peers, namespace *corev1.Namespace) error {
	p := b.peering(fleet.Provider{ID: found.tenants[namespace.Name]})
	p.self, p.localNS, p.ownNS = self, namespace.Name, b.isOurs(self.id, namespace)
	p.going = namespace.DeletionTimestamp != nil
	if p.going {
		return nil
	}
	note, err := p.note(ctx)
	if b.unadmitted(err) {
		if p.ownNS { // somebody has taken the rights away: the next call has them
			return errors.Join(err, p.admit(ctx, p.localNS))
		}
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		found.add(note)
		if noted := notedIn(note); noted != nil && !noted.Over(time.Now()) {
			peer := found.byID[p.provider.ID]
			peer.Refusing = noted
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
