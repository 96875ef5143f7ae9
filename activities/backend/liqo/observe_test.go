package liqo

import (
	"context"
	"errors"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// replica returns the provider's copy of the first attempt's slice.
func replica() *authv1beta1.ResourceSlice {
	return &authv1beta1.ResourceSlice{ObjectMeta: named(remoteNS, "lca-g-abc-1-1", mine(),
		map[string]string{consts.ReplicationOriginLabel: me})}
}

func tenantIn(condition authv1beta1.TenantCondition) *authv1beta1.Tenant {
	tenant := tenantOf(mine())
	tenant.Spec.TenantCondition = condition
	return tenant
}

func server() client.Object {
	return netObject(networking.WithKind(kindServer), remoteNS, me, with(mine(), of(me)), map[string]any{})
}

func connectionAt(namespace, remote, value, at string) client.Object {
	return netObject(networking.WithKind(kindConnection), namespace, "gw-"+remote, of(remote), map[string]any{
		"status": map[string]any{"value": value, "latency": map[string]any{"timestamp": at}}})
}

// gatewayRunning returns the Deployment that Liqo makes for a gateway, with the arguments of its container.
func gatewayRunning(namespace, remote string, ready int32, args ...string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named(namespace, "gw-"+remote),
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "wireguard"}, {Name: "gateway", Args: args}}}}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: ready}}
}

// unschedulable returns a pod of a peering that cannot be scheduled on the consumer.
func unschedulable(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named(localNS, name, gatewayPods),
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "gateway",
			Resources: corev1.ResourceRequirements{Requests: shape("250m")}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}}}
}

func noRoom(pod string) fleet.Fault {
	return fleet.Fault{Condition: fleet.ConditionNoRoomForGateway, Message: "NoRoomForGateway: pod " + localNS + "/" +
		pod + ", which requests cpu 250m and memory 0: Unschedulable: 0/1 nodes are available: reserve room for it " +
		"here, or give it a priority class"}
}

func coloured(name, color string) *offloadingv1beta1.VirtualNode {
	return &offloadingv1beta1.VirtualNode{ObjectMeta: named(localNS, name, of(peer)),
		Spec: offloadingv1beta1.VirtualNodeSpec{Labels: map[string]string{"color": color}}}
}

func selecting(color string) *offloadingv1beta1.NamespaceOffloading {
	o := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: named("ml", "offloading")}
	o.Spec.ClusterSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "color", Operator: corev1.NodeSelectorOpIn, Values: []string{color}}}}}
	return o
}

func TestObserveReportsPeeringAndNodes(t *testing.T) {
	leaving := accepted("2")
	now := metav1.Now()
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"crd-replicator"}
	theirs := accepted("2")
	theirs.Name, theirs.Labels[backend.LabelHub] = "lca-g-abc-9-1", "other"
	for name, c := range map[string]struct {
		here, there []client.Object
		want        backend.Observation
	}{
		"all is well": {peered(accepted("2"), theirs), []client.Object{tenantNS(me), tenantIn(""), replica()},
			backend.Observation{}},
		"the slice is gone": {peered(accepted("2")), []client.Object{tenantNS(me), tenantIn("")},
			backend.Observation{Absent: []string{"lca-g-abc-1-1"}}},
		"the slice is being returned": {peered(leaving), []client.Object{tenantNS(me), tenantIn("")},
			backend.Observation{}},
		"cordoned": {peered(accepted("2")), []client.Object{tenantNS(me), tenantIn("Cordoned"), replica()},
			backend.Observation{Tenant: fleet.RefusingCordoned,
				Message: "our Tenant liqo-tenant-consumer/consumer is Cordoned"}},
		"drained": {peered(accepted("2")), []client.Object{tenantNS(me), tenantIn("Drained")},
			backend.Observation{Tenant: fleet.RefusingDrained, Absent: []string{"lca-g-abc-1-1"},
				Message: "our Tenant liqo-tenant-consumer/consumer is Drained"}},
		"the Tenant is gone": {peered(accepted("2")), []client.Object{tenantNS(me), replica()},
			backend.Observation{Tenant: fleet.RefusingRemoved, Message: "our Tenant is gone there"}},
		"its namespace is gone": {peered(accepted("2")), nil, backend.Observation{Tenant: fleet.RefusingRemoved,
			Absent: []string{"lca-g-abc-1-1"}, Message: "our tenant namespace is gone there"}},
		"not peered": {nil, nil, backend.Observation{}},
		"connected": {append(peered(accepted("2")), connectionAt(localNS, peer, "Connected", "12:01")),
			[]client.Object{tenantNS(me), tenantIn(""), replica(), server(), connectionAt(remoteNS, me, "Connected", "12:02")},
			backend.Observation{Heard: []string{"12:01", "12:02"}}},
		"connected, measured seldom": {append(peered(accepted("2")), connectionAt(localNS, peer, "Connected", "12:01"),
			gatewayRunning(localNS, peer, 1, "--mode=client", "--ping-update-status-interval=40s")),
			[]client.Object{tenantNS(me), tenantIn(""), replica(), server(), connectionAt(remoteNS, me, "Connected", ""),
				gatewayRunning(remoteNS, me, 1, "--ping-update-status-interval=10s")},
			backend.Observation{Heard: []string{"12:01", ""}, Quiet: 2 * time.Minute}},
		"our own gateway does not run": {append(peered(accepted("2")), gatewayRunning(localNS, peer, 0),
			netObject(networking.WithKind(kindClient), localNS, peer, with(mine(), of(peer)), map[string]any{})),
			[]client.Object{tenantNS(me), tenantIn(""), replica(), server(), connectionAt(remoteNS, me, "Error", "12:02")},
			backend.Observation{NetworkHere: true, Network: "Deployment " + localNS + "/gw-" + peer +
				" of the gateway on this cluster has no ready pod yet"}},
		"no room for a pod": {append(peered(accepted("2")), unschedulable("gw-provider1")),
			[]client.Object{tenantNS(me), tenantIn(""), replica()}, backend.Observation{Fault: noRoom("gw-provider1")}},
		"no room for the gateway of a peering that is being made": {[]client.Object{tenantNS(peer), unschedulable("gw")},
			nil, backend.Observation{Fault: noRoom("gw")}},
		"a clusterSelector divides its nodes": {append(peered(accepted("2")), coloured("one", "red"),
			coloured("two", "blue"), selecting("red")), []client.Object{tenantNS(me), tenantIn(""), replica()},
			backend.Observation{Fault: fleet.Fault{Condition: fleet.ConditionNamespaceDivided,
				Message: "NamespaceOffloading ml/offloading selects only one of the nodes one and two on provider provider1, " +
					"and Liqo would remove the namespace there: let its clusterSelector name labels that all groups on that " +
					"provider have alike"}}},
		"not connected": {append(peered(accepted("2")), connectionAt(localNS, peer, "Connected", "12:01")),
			[]client.Object{tenantNS(me), tenantIn(""), replica(), server(), connectionAt(remoteNS, me, "Error", "12:02")},
			backend.Observation{Network: "the Connection on this cluster is Connected; " +
				"the Connection on provider provider1 is Error"}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := newClusters(t, c.here, c.there)
			seen, err := clusters.Observe(prompt(t), known())
			require.NoError(t, err)
			require.Equal(t, c.want, seen)

			seen, err = clusters.Observe(prompt(t), provider())
			require.NoError(t, err)
			require.Empty(t, seen.Network, "the offer wants none")
		})
	}
}

// A read of Observe fails. Observe then reports nothing about the nodes, not even the results of its earlier reads.
func TestFailedReadMakesObserveReportNoNodes(t *testing.T) {
	there := []client.Object{tenantNS(me)}
	forbidden := apierrors.NewForbidden(corev1.Resource("any"), "", errors.New("no such role"))
	for name, c := range map[string]struct {
		fails          func(client.ObjectList) error
		is, isNot      error
		down, consumer bool
	}{
		"token is gone":      {fails: all(apierrors.NewUnauthorized("gone")), is: backend.ErrCredentials},
		"nothing is allowed": {fails: all(forbidden), is: backend.ErrCredentials},
		"slices are not allowed": {is: backend.ErrCredentials, fails: func(list client.ObjectList) error {
			if _, slices := list.(*authv1beta1.ResourceSliceList); slices {
				return forbidden
			}
			return nil
		}},
		"no answer": {fails: all(errors.New("connection refused")), is: backend.ErrUnreachable,
			isNot: backend.ErrCredentials},
		"overloaded":       {fails: all(apierrors.NewServiceUnavailable("later")), is: backend.ErrUnreachable},
		"no answer at all": {down: true, is: backend.ErrUnreachable, isNot: backend.ErrCredentials},
		"our own side":     {consumer: true, fails: all(errors.New("connection refused")), isNot: backend.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newClusters(t, peered(accepted("2")), there)
			w.down = c.down
			fail := interceptor.Funcs{List: func(ctx context.Context, cluster client.WithWatch, list client.ObjectList,
				opts ...client.ListOption) error {
				if err := c.fails(list); err != nil {
					return err
				}
				return cluster.List(ctx, list, opts...)
			}}
			switch {
			case c.consumer:
				w.local = interceptor.NewClient(w.watch, fail)
			case c.fails != nil:
				w.there = interceptor.NewClient(w.there.(client.WithWatch), fail)
			}
			seen, err := w.Observe(prompt(t), provider())
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			if c.isNot != nil {
				require.NotErrorIs(t, err, c.isNot)
			}
			require.Zero(t, seen)
		})
	}
}

func all(err error) func(client.ObjectList) error {
	return func(client.ObjectList) error { return err }
}

// The account may read its tenant namespace by name, but may not list namespaces. Observe still notices when the
// namespace is gone.
func TestObserveNeedsNoListPermission(t *testing.T) {
	w := newClusters(t, peered(accepted("2")), nil)
	w.there = interceptor.NewClient(w.there.(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context,
		cluster client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, namespaces := list.(*corev1.NamespaceList); namespaces {
			return apierrors.NewForbidden(corev1.Resource("namespaces"), "", errors.New("no"))
		}
		return cluster.List(ctx, list, opts...)
	}})
	seen, err := w.Observe(prompt(t), provider())
	require.NoError(t, err)
	require.Equal(t, fleet.RefusingRemoved, seen.Tenant)
}

func TestObserveRefusesAnotherCluster(t *testing.T) {
	w := newClusters(t, peered(accepted("2")), nil)
	p := provider()
	p.ID = "somebody-else"
	seen, err := w.Observe(prompt(t), p)
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.Zero(t, seen)
}
