package microvm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// foundAttempt contains the existing objects of an attempt. The Node's UID distinguishes a Node from a later Node of
// the same name.
type foundAttempt struct {
	fleet.Found
	node types.UID
}

// List finds the attempts by their records. It also finds Nodes without a record, by their annotations.
func (b *Backend) List(ctx context.Context, scope backend.Scope) ([]fleet.Found, error) {
	found, err := b.find(ctx, scope.Group)
	all := make([]fleet.Found, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if f := found[name].Found; scope.Contains(f.Attempt) {
			all = append(all, f)
		}
	}
	return all, err
}

func (b *Backend) find(ctx context.Context, group string) (map[string]foundAttempt, error) {
	which, ofNodes := b.ours(), client.ListOption(client.HasLabels{fleet.LabelGroup})
	if group != "" {
		which[backend.LabelGroup], ofNodes = group, client.MatchingLabels{fleet.LabelGroup: group}
	}
	var all corev1.NodeList // listed first: each Node was recorded before it was registered
	if err := b.local.List(ctx, &all, ofNodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	records, err := b.records(ctx, which)
	if err != nil {
		return nil, err
	}
	found := map[string]foundAttempt{}
	for i := range records {
		b.addRecord(found, &records[i])
	}
	for i := range all.Items {
		b.addNode(found, &all.Items[i])
	}
	return found, nil
}

func (b *Backend) addRecord(found map[string]foundAttempt, record *corev1.ConfigMap) {
	name, ok := attemptIn(record.Name)
	if !ok {
		return
	}
	a, ok := b.attemptOf(record.Labels, name, record.Labels[fleet.LabelMachineProvider])
	if !ok {
		return
	}
	a.Provider.Credentials = backend.CredentialsOf(record.Annotations)
	found[name] = foundAttempt{Found: fleet.Found{Attempt: a, Slice: true, Virtual: record.DeletionTimestamp == nil,
		Terminating: record.DeletionTimestamp != nil, Marked: record.Annotations[backend.AnnotationStamp] == a.InstanceID(),
		Booking: backend.BookingOf(record.Annotations)}}
}

func (b *Backend) addNode(found map[string]foundAttempt, node *corev1.Node) {
	f, recorded := found[node.Name]
	if a, ours := b.attemptOf(node.Annotations, node.Name, node.Labels[fleet.LabelMachineProvider]); !recorded && ours {
		f.Attempt = a
	} else if !recorded || !isOf(node, f.Attempt) {
		return
	}
	f.node = node.UID
	nodes.Describe(&f.Found, node)
	found[node.Name] = f
}

// Peers lists the established hosts, and the hosts with a recorded refusal that has not expired.
func (b *Backend) Peers(ctx context.Context, provider string) (peers []fleet.Provider, err error) {
	which := b.ours()
	if provider != "" {
		which[fleet.LabelMachineProvider] = provider
	}
	records, err := b.records(ctx, which)
	for i := range records {
		if id := records[i].Labels[fleet.LabelMachineProvider]; records[i].Name == peeringName(id) {
			peers = append(peers, fleet.Provider{ID: id, Credentials: backend.CredentialsOf(records[i].Annotations),
				Refusing: refusalIn(&records[i])})
		}
	}
	slices.SortFunc(peers, func(a, b fleet.Provider) int { return cmp.Compare(a.ID, b.ID) })
	return peers, err
}

// Watch lists the attempts at the interval Config.Poll and reports the differences. After a failed list, Watch
// reports every attempt again.
func (b *Backend) Watch(ctx context.Context, handle func(fleet.Found)) error {
	reported, gap := map[string]foundAttempt{}, true
	for {
		if found, err := b.find(ctx, ""); err != nil {
			gap = true
		} else {
			for _, name := range slices.Sorted(maps.Keys(found)) {
				if before, known := reported[name]; gap || !known || !reflect.DeepEqual(before, found[name]) {
					handle(found[name].Found)
				}
			}
			for name, before := range reported {
				if _, exists := found[name]; !exists {
					handle(fleet.Found{Attempt: before.Attempt})
				}
			}
			reported, gap = found, false
		}
		if !wait.For(ctx, b.config.Poll) {
			return ctx.Err()
		}
	}
}

// Restamp sets the annotations and the instance id again on the Node of a marked attempt. For a missing Node it does
// nothing: the machine's kubelet registers the Node again when it is restarted.
func (b *Backend) Restamp(ctx context.Context, a fleet.Attempt) error {
	record, err := b.attemptRecord(ctx, a)
	if err != nil || record == nil || record.DeletionTimestamp != nil ||
		record.Annotations[backend.AnnotationStamp] != a.InstanceID() {
		return err
	}
	node, err := b.node(ctx, a)
	if err != nil || node == nil || node.DeletionTimestamp != nil {
		return err
	}
	carriers, err := b.carriers(ctx, a)
	if err != nil {
		return err
	}
	if len(carriers) > 0 {
		return errorf(backend.ErrConflict, "Node %s carries the instance id already", carriers[0].Name)
	}
	if err := unsettled(node); err != nil {
		return err
	}
	if err := b.annotateAttempt(ctx, node, a, priceOf(record)); err != nil {
		return err
	}
	return b.stamp(ctx, node, a.InstanceID())
}

// priceOf returns the price annotations of the Node that a record describes.
func priceOf(record *corev1.ConfigMap) map[string]string {
	booking := backend.BookingOf(record.Annotations)
	if booking == nil {
		return nil
	}
	return backend.NodeSpec{Booking: *booking}.Price()
}

// unsettled returns ErrNotYet if the Node has no instance id and must not be stamped again yet.
func unsettled(node *corev1.Node) error {
	lacks := nodes.Unsettled(node, backend.NodeSpec{})
	if lacks == "" || node.Spec.ProviderID != "" {
		return nil
	}
	return errorf(backend.ErrNotYet, "%s", lacks)
}
