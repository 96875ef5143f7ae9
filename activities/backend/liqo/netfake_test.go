package liqo

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// networked returns a provider with a network.
func networked(mode fleet.NetworkMode, options string) fleet.Provider {
	p := known()
	p.Network = &fleet.Network{Mode: mode, Options: json.RawMessage(options)}
	return p
}

// ipamOf returns the Network objects of a cluster whose Liqo has the networking module.
func ipamOf(pods, external string) []client.Object {
	return []client.Object{
		netObject(ipam.WithKind("Network"), "liqo", "pod-cidr", map[string]string{consts.NetworkTypeLabelKey: "pod-cidr"},
			map[string]any{"status": map[string]any{"cidr": pods}}),
		netObject(ipam.WithKind("Network"), "liqo", "external-cidr",
			map[string]string{consts.NetworkTypeLabelKey: "external-cidr"},
			map[string]any{"status": map[string]any{"cidr": external}}),
	}
}

func netObject(kind schema.GroupVersionKind, namespace, name string, labels map[string]string,
	content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// players act as Liqo in both clusters of a network. They immediately create the objects that Liqo would create for
// our objects, and remove them together with our objects.
type players struct {
	t    *testing.T
	c    *clusters
	idle map[string]bool // kinds to which the players do not react
	// refuse contains, by kind, the error that the creation of an object returns.
	refuse  map[string]error
	address string // address of the gateway that accepts connections
	ports   []any  // its ports in the form of a Liqo after 1.2, instead of one port
}

// listens returns the endpoint to which the other gateway connects.
func (p *players) listens() map[string]any {
	if p.ports != nil {
		return map[string]any{"addresses": []any{p.address}, "ports": p.ports, "protocol": "UDP"}
	}
	return map[string]any{"addresses": []any{p.address}, "port": int64(51840), "protocol": "UDP"}
}

func withLiqo(t *testing.T, here, there []client.Object) (*clusters, *players) {
	t.Helper()
	c := newClusters(t, append(here, ipamOf("10.1.0.0/16", "10.70.0.0/16")...),
		append(there, ipamOf("10.2.0.0/16", "10.70.0.0/16")...))
	p := &players{t: t, c: c, idle: map[string]bool{}, refuse: map[string]error{}, address: "203.0.113.1"}
	play := func(cluster client.WithWatch) client.WithWatch {
		return interceptor.NewClient(cluster, interceptor.Funcs{
			Create: func(ctx context.Context, cluster client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				kind := o.GetObjectKind().GroupVersionKind()
				if err := p.refuse[kind.Kind]; err != nil {
					return err
				}
				err := cluster.Create(ctx, o, opts...)
				if err == nil && kind.GroupVersion() == networking {
					p.created(cluster, o.(*unstructured.Unstructured))
				}
				return err
			},
			Delete: func(ctx context.Context, cluster client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				err := cluster.Delete(ctx, o, opts...)
				if kind := o.GetObjectKind().GroupVersionKind(); err == nil && kind.GroupVersion() == networking {
					p.deleted(cluster, o)
				}
				return err
			},
		})
	}
	c.local, c.there = play(c.watch), play(c.there.(client.WithWatch))
	return c, p
}

// created makes the objects that Liqo would make for a new object.
func (p *players) created(cluster client.WithWatch, o *unstructured.Unstructured) {
	ctx := p.t.Context()
	if p.idle[o.GetKind()] {
		return
	}
	o.SetUID("some")
	set := func(status map[string]any) {
		o.Object["status"] = status
		require.NoError(p.t, cluster.Update(ctx, o))
	}
	switch o.GetKind() {
	case kindConfiguration:
		set(map[string]any{"remote": map[string]any{"cidr": map[string]any{"pod": []any{"10.9.0.0/16"}}}})
	case kindServer, kindClient:
		name := "gw-" + o.GetName()
		labels := map[string]string{consts.GatewayResourceLabel: consts.GatewayResourceLabelValue}
		require.NoError(p.t, cluster.Create(ctx, &corev1.Secret{ObjectMeta: named(o.GetNamespace(), name, labels),
			Data: map[string][]byte{consts.PublicKeyField: []byte("public key of " + o.GetNamespace()),
				consts.PrivateKeyField: []byte("s3cret")}}))
		require.NoError(p.t, cluster.Create(ctx, &appsv1.Deployment{ObjectMeta: named(o.GetNamespace(), name),
			Status: appsv1.DeploymentStatus{ReadyReplicas: 1}}))
		status := map[string]any{"secretRef": map[string]any{"name": name, "namespace": o.GetNamespace()}}
		if o.GetKind() == kindServer {
			status["endpoint"] = p.listens()
		}
		set(status)
	case kindKey:
		value := "Connected"
		if p.idle[kindConnection] {
			value = "Connecting"
		}
		require.NoError(p.t, cluster.Create(ctx, netObject(networking.WithKind(kindConnection), o.GetNamespace(),
			"gw-"+o.GetName(), map[string]string{consts.RemoteClusterID: o.GetName()},
			map[string]any{"status": map[string]any{"value": value}})))
	}
}

// deleted removes the objects that Liqo removes with an object.
func (p *players) deleted(cluster client.WithWatch, o client.Object) {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != kindServer && kind != kindClient {
		return
	}
	ctx, namespace := p.t.Context(), o.GetNamespace()
	for _, object := range []client.Object{
		netObject(networking.WithKind(kindConnection), namespace, "gw-"+o.GetName(), nil, map[string]any{}),
		netObject(networking.WithKind(kindKey), namespace, o.GetName(), nil, map[string]any{}),
		&corev1.Secret{ObjectMeta: named(namespace, "gw-"+o.GetName())},
		&appsv1.Deployment{ObjectMeta: named(namespace, "gw-"+o.GetName())},
	} {
		require.NoError(p.t, client.IgnoreNotFound(cluster.Delete(ctx, object)))
	}
}

// netObjects returns all objects of networks on both clusters. The key contains cluster, kind and name.
func netObjects(t *testing.T, c *clusters) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for where, cluster := range map[string]client.Client{"here": c.local, "there": c.there} {
		for _, kind := range append([]string{kindConnection}, made...) {
			all, err := listOf(t.Context(), cluster, networking.WithKind(kind))
			require.NoError(t, err)
			for i := range all {
				found[where+" "+kind+" "+all[i].GetNamespace()+"/"+all[i].GetName()] = &all[i]
			}
		}
	}
	return found
}

func namesOf(objects map[string]*unstructured.Unstructured) map[string]bool {
	names := map[string]bool{}
	for name := range maps.Keys(objects) {
		names[name] = true
	}
	return names
}
