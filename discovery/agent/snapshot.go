package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// tenantResource is Liqo's resource Tenant.
var tenantResource = sliceResource.GroupVersion().WithResource("tenants")

const tenantActive = "Active"

// snapshot is the input of a round. grants contains the entries of the record whose slices still exist.
type snapshot struct {
	world   World
	tenants map[string]Tenant
	record  edition
	grants  map[types.UID]grant
}

// snapshot reads the record, the Tenants and the slices.
func (g *granter) snapshot(ctx context.Context) (seen snapshot, err error) {
	if seen.record, err = g.record.read(ctx); err != nil {
		return seen, err
	}
	if seen.tenants, err = g.readTenants(ctx); err != nil {
		return seen, err
	}
	seen.world = g.world()
	if seen.record.version == "" { // the first record contains the grants in the status of the slices
		seen.world.Slices, err = g.readSlices(ctx)
	} else {
		seen.world.Slices, err = g.withRecorded(ctx, seen.record, seen.world.Slices)
	}
	if err != nil {
		return seen, err
	}
	seen.grants = g.present(seen.record, seen.world.Slices, seen.tenants)
	settle(seen.world.Slices, seen.tenants, seen.grants)
	g.reportForged(seen.world.Slices)
	return seen, nil
}

// present returns the entries of the record whose slices still exist, except entries of slices that this agent has
// denied since then. If no record exists yet, it returns the grants in the status of the slices, for the first
// record.
func (g *granter) present(was edition, all []Slice, tenants map[string]Tenant) map[types.UID]grant {
	settle(all, tenants, nil)
	grants := map[types.UID]grant{}
	for _, s := range all {
		switch entry, ok := was.grants[s.UID]; {
		case ok && !(g.denied[s.UID] && s.condition(conditionResources) == denied):
			grants[s.UID] = entry
		case was.version == "" && s.Spec.Class == Class && s.condition(conditionResources) == accepted && s.Incoming():
			grants[s.UID] = grant{Namespace: s.Namespace, Name: s.Name, Resources: positive(s.Status.Resources)}
		}
	}
	here := map[types.UID]bool{}
	for _, s := range all {
		here[s.UID] = true
	}
	gone := func(uid types.UID) bool { return !here[uid] }
	maps.DeleteFunc(g.denied, func(uid types.UID, _ bool) bool { return gone(uid) })
	maps.DeleteFunc(g.forged, func(uid types.UID, _ bool) bool { return gone(uid) })
	maps.DeleteFunc(g.failures, func(uid types.UID, _ failure) bool { return gone(uid) })
	return grants
}

// withRecorded adds slices that are in the record but not yet in the watch. Such a slice was granted by another agent
// a moment ago. withRecorded does not add deleted slices, and the next write of the record omits them.
func (g *granter) withRecorded(ctx context.Context, was edition, all []Slice) ([]Slice, error) {
	known := map[types.UID]bool{}
	for _, s := range all {
		known[s.UID] = true
	}
	for uid, entry := range was.grants {
		if known[uid] {
			continue
		}
		object, err := g.slice(ctx, entry.Namespace, entry.Name, uid)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read slice %s/%s, which is granted: %w", entry.Namespace, entry.Name, err)
		default:
			all = append(all, sliceOf(trimLiqo(object)))
		}
	}
	return all, nil
}

// readSlices lists the slices from the API server, because the watch may be late.
func (g *granter) readSlices(ctx context.Context) (all []Slice, err error) {
	_, err = listLiqo(g.objects, sliceResource).each(ctx, slicesPerPage, func(o runtime.Object) error {
		all = append(all, sliceOf(trimLiqo(o.(*unstructured.Unstructured))))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	return all, nil
}

// readTenants lists the Tenants and returns them by namespace.
func (g *granter) readTenants(ctx context.Context) (map[string]Tenant, error) {
	var all []*unstructured.Unstructured
	_, err := listLiqo(g.objects, tenantResource).each(ctx, slicesPerPage, func(o runtime.Object) error {
		all = append(all, trimLiqo(o.(*unstructured.Unstructured)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list Tenants: %w", err)
	}
	return tenantsOf(all), nil
}

// tenantsOf returns the Tenants by namespace. It omits a namespace with several Tenants, as Liqo does.
func tenantsOf(all []*unstructured.Unstructured) map[string]Tenant {
	tenants, several := map[string]Tenant{}, map[string]bool{}
	for _, o := range all {
		id, _, _ := unstructured.NestedString(o.Object, "spec", "clusterID")
		condition, _, _ := unstructured.NestedString(o.Object, "spec", "tenantCondition")
		_, has := tenants[o.GetNamespace()]
		several[o.GetNamespace()] = has || several[o.GetNamespace()]
		tenants[o.GetNamespace()] = Tenant{ClusterID: id, Condition: cmp.Or(condition, tenantActive)}
	}
	maps.DeleteFunc(tenants, func(namespace string, t Tenant) bool { return several[namespace] || t.ClusterID == "" })
	return tenants
}
