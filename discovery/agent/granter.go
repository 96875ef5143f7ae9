package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/told"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// tenantResource is Liqo's Tenant.
var tenantResource = sliceResource.GroupVersion().WithResource("tenants")

const tenantActive = "Active"

// granter answers the slices of Class, one at a time, in the order in which they were made. Only the agent with the
// Lease has one at work. What is granted is read from the API server before each round, and not from a watch, which may
// be behind: so that no room is granted twice.
type granter struct {
	objects dynamic.Interface
	config  func() Config
	world   func() World // its slices are not used
	log     *slog.Logger
	metrics *Metrics

	// unsure are slices whose answer may have been written and may yet take effect: they are answered first, for until
	// then it is not known what is free.
	unsure map[types.UID]bool
}

// roundWithin bounds one request.
const roundWithin = 10 * time.Second

// run answers until ctx ends. waits has a value when a slice may have come.
func (g *granter) run(ctx context.Context, waits <-chan struct{}) {
	g.unsure = map[types.UID]bool{}
	var told told.Once
	for ctx.Err() == nil {
		again, err := g.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if told.IsNew(err) {
			g.log.Warn("ResourceSlices cannot be answered", "error", err)
		}
		if again || err != nil {
			wait.For(ctx, jitter(writeEvery))
			continue
		}
		select {
		case <-waits:
		case <-ctx.Done():
		}
	}
}

// round answers all that wait, and ends early when a slice has changed since it was read. again asks for another round
// soon: something has changed meanwhile.
func (g *granter) round(ctx context.Context) (again bool, err error) {
	world, objects, err := g.read(ctx)
	if err != nil {
		return true, err
	}
	order := g.order(world.Slices)
	if len(order) == 0 {
		return false, nil
	}
	tenants, err := g.readTenants(ctx)
	if err != nil {
		return true, err
	}
	config := g.config()
	world.Tolerations = config.NodeTolerations
	var refused error
	for _, n := range order {
		s := world.Slices[n]
		tenant, ok := tenants[s.Namespace]
		if !ok { // Liqo does not go on without one either
			again = true
			continue
		}
		verdict := config.Judge(world, s, tenant)
		g.unsure[s.UID] = true
		switch err := g.write(ctx, objects[n], verdict, config); {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			// This answer takes no effect. The change may be another agent's grant, so what was read no longer says what is
			// free.
			delete(g.unsure, s.UID)
			return true, nil
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err): // was not written either
			delete(g.unsure, s.UID)
			refused = fmt.Errorf("answer slice %s/%s: %w", s.Namespace, s.Name, err)
			continue
		case err != nil:
			return true, fmt.Errorf("answer slice %s/%s: %w", s.Namespace, s.Name, err)
		}
		delete(g.unsure, s.UID)
		if verdict.Granted {
			world.Slices[n].Status.Resources = s.Spec.Resources
			world.Slices[n].Status.Conditions = append(s.Status.Conditions,
				sliceCondition{Type: conditionResources, Status: accepted})
		}
		g.metrics.answered(verdict)
		g.log.Info("ResourceSlice answered", "slice", s.Name, "consumer", tenant.ClusterID, "granted", verdict.Granted,
			"reason", verdict.Reason, "message", verdict.Message, "asks", show(s.Spec.Resources))
	}
	return again, refused
}

// read lists the slices as they are now; what cannot be read is an error, for it may have been granted something.
func (g *granter) read(ctx context.Context) (World, []*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	list, err := g.objects.Resource(sliceResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return World{}, nil, fmt.Errorf("list slices: %w", err)
	}
	world := g.world()
	world.Slices = nil
	var objects []*unstructured.Unstructured
	for i := range list.Items {
		s, err := sliceOf(&list.Items[i])
		if err != nil {
			return World{}, nil, err
		}
		world.Slices, objects = append(world.Slices, s), append(objects, &list.Items[i])
	}
	return world, objects, nil
}

// order is that of the slices that wait: those that are unsure, and then by age.
func (g *granter) order(all []Slice) (order []int) {
	for n, s := range all {
		if s.Waits() {
			order = append(order, n)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := all[a], all[b]
		switch {
		case g.unsure[x.UID] && !g.unsure[y.UID]:
			return -1
		case g.unsure[y.UID] && !g.unsure[x.UID]:
			return 1
		}
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Namespace, y.Namespace),
			cmp.Compare(x.Name, y.Name))
	})
	return order
}

// readTenants are the Tenants by their namespaces; a namespace with several has none that counts, as for Liqo.
func (g *granter) readTenants(ctx context.Context) (map[string]Tenant, error) {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	list, err := g.objects.Resource(tenantResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Tenants: %w", err)
	}
	tenants, several := map[string]Tenant{}, map[string]bool{}
	for _, o := range list.Items {
		id, _, wrongID := unstructured.NestedString(o.Object, "spec", "clusterID")
		condition, _, wrong := unstructured.NestedString(o.Object, "spec", "tenantCondition")
		if err := errors.Join(wrongID, wrong); err != nil {
			return nil, fmt.Errorf("read Tenant %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		_, has := tenants[o.GetNamespace()]
		several[o.GetNamespace()] = has || several[o.GetNamespace()]
		tenants[o.GetNamespace()] = Tenant{ClusterID: id, Condition: cmp.Or(condition, tenantActive)}
	}
	maps.DeleteFunc(tenants, func(namespace string, _ Tenant) bool { return several[namespace] })
	return tenants, nil
}

// write puts the verdict into the slice as it was read: when anybody has changed it since, that is a conflict.
func (g *granter) write(ctx context.Context, read *unstructured.Unstructured, v Decision, config Config) error {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	object := read.DeepCopy()
	status, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return err
	}
	if status == nil {
		status = map[string]any{}
	}
	conditions, _ := status["conditions"].([]any)
	value := denied
	if v.Granted {
		value = accepted
		status["resources"], _, _ = unstructured.NestedFieldCopy(object.Object, "spec", "resources")
		nodeLabels := map[string]any{}
		for key, label := range config.NodeLabels {
			nodeLabels[key] = label
		}
		status["nodeLabels"] = nodeLabels
		status["storageClasses"] = classes("storageClassName", config.StorageClasses)
		status["ingressClasses"] = classes("ingressClassName", config.IngressClasses)
		status["loadBalancerClasses"] = classes("loadBalancerClassName", config.LoadBalancerClasses)
	}
	status["conditions"] = append(conditions, runtime.DeepCopyJSONValue(map[string]any{
		"type": conditionResources, "status": value, "reason": v.Reason, "message": v.Message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}))
	object.Object["status"] = status
	_, err = g.objects.Resource(sliceResource).Namespace(object.GetNamespace()).UpdateStatus(ctx, object,
		metav1.UpdateOptions{})
	return err
}

// classes are names as Liqo has them in a slice; the first one is the default.
func classes(key string, names []string) []any {
	out := []any{}
	for n, name := range names {
		out = append(out, map[string]any{key: name, "default": n == 0})
	}
	return out
}
