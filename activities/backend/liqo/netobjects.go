package liqo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/liqotech/liqo/pkg/consts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These are the kinds of a network that users or this package make. Liqo makes all other kinds, including
// Connections. This package reads and writes these kinds without their Go types: the types would add many unneeded
// dependencies, and are older than the types of Liqo 1.2.
const (
	kindConfiguration = "Configuration"
	kindServer        = "GatewayServer"
	kindClient        = "GatewayClient"
	kindKey           = "PublicKey"
	kindConnection    = "Connection"
)

var (
	networking = schema.GroupVersion{Group: "networking.liqo.io", Version: "v1beta1"}
	ipam       = schema.GroupVersion{Group: "ipam.liqo.io", Version: "v1alpha1"}
)

// made contains the kinds in the order in which the objects are created. The objects are removed in the opposite
// order.
var made = []string{kindConfiguration, kindServer, kindClient, kindKey}

// half contains one cluster's part of the network. All its objects are named after the other cluster and labelled with
// that cluster's id.
type half struct {
	p     *peering
	where string // for messages
	peer  string // the other cluster's id
	ns    string // the tenant namespace; "" before it exists
	liqo  string // the namespace of Liqo
	// do calls action with a client of the cluster.
	do func(ctx context.Context, what string, action func(cluster client.Client) error) error
	// annotations are set on the objects that we make there.
	annotations map[string]string

	objects    map[string]*unstructured.Unstructured // by kind, as last read
	foreign    string                                // description of an object of another owner, or ""
	connection string                                // status.value of the Connection, or ""
}

// hereName is the name of the consumer in messages.
const hereName = "this cluster"

// halves returns the halves of the consumer and the provider. Each half has the tenant namespace that locate or
// locateRemote last found.
func (p *peering) halves() (here, there *half) {
	here = &half{p: p, where: hereName, peer: p.provider.ID, ns: p.localNS, liqo: p.self.namespace,
		annotations: p.annotations(),
		do: func(_ context.Context, what string, action func(cluster client.Client) error) error {
			if err := action(p.local); err != nil {
				return ownSide{fmt.Errorf("%s: %w", what, err)}
			}
			return nil
		}}
	there = &half{p: p, where: "provider " + p.provider.ID, peer: p.self.id, ns: p.remoteNS, liqo: p.remote.namespace,
		do: p.remote.do}
	return here, there
}

// read reads the objects of the half, one of each kind. It stores an object of another owner in foreign and not in
// objects, because that owner decides about the network.
func (h *half) read(ctx context.Context) error {
	h.objects, h.foreign, h.connection = map[string]*unstructured.Unstructured{}, "", ""
	if h.ns == "" {
		return nil
	}
	kinds := append([]string{kindConnection}, made...)
	return h.do(ctx, "read the network", func(cluster client.Client) error {
		found, errs := concurrently(kinds, func(kind string) ([]unstructured.Unstructured, error) {
			return listOf(ctx, cluster, networking.WithKind(kind), client.InNamespace(h.ns),
				client.MatchingLabels{consts.RemoteClusterID: h.peer})
		})
		for n, kind := range kinds {
			if errs[n] != nil {
				return fmt.Errorf("list %ss: %w", kind, errs[n])
			}
			for i := range found[n] {
				h.record(kind, &found[n][i])
			}
		}
		return nil
	})
}

// concurrently calls the function for all elements concurrently, because a pass is short and a cluster may have a
// high latency. A caller that reads the answers in order gets the same result as from sequential calls. If the
// function panics, concurrently raises the panic in the calling goroutine, as backend.Poll.Run does.
func concurrently[T, A any](all []T, call func(T) (A, error)) (answers []A, errs []error) {
	answers, errs = make([]A, len(all)), make([]error, len(all))
	faults := make([]error, len(all))
	wait.ForAll(all, len(all), func(n int, one T) {
		defer func() {
			if cause := recover(); cause != nil {
				faults[n] = fmt.Errorf("%v\n%s", cause, debug.Stack())
			}
		}()
		answers[n], errs[n] = call(one)
	})
	if fault := errors.Join(faults...); fault != nil {
		panic(fault)
	}
	return answers, errs
}

func (h *half) record(kind string, object *unstructured.Unstructured) {
	switch {
	case kind == kindConnection: // owned by Liqo
		h.connection = text(object, "status", "value")
	case !h.p.mine(object):
		if h.foreign != "" {
			return
		}
		h.foreign = fmt.Sprintf("%s %s/%s on %s", kind, object.GetNamespace(), object.GetName(), h.where)
		return
	}
	h.objects[kind] = object
}

// has reports whether the half has any object that a user or an installation has made.
func (h *half) has() bool { return h.foreign != "" || h.owns() }

// owns reports whether any object of the network is owned by us.
func (h *half) owns() bool {
	return slices.ContainsFunc(made, func(kind string) bool { return h.objects[kind] != nil })
}

func (h *half) connected() bool { return h.connection == "Connected" }

// describe describes the state of the half's Connection for messages.
func (h *half) describe() string {
	switch {
	case h.objects[kindConnection] == nil:
		return "there is no Connection on " + h.where
	case h.connection == "":
		return "the Connection on " + h.where + " has no status"
	default:
		return "the Connection on " + h.where + " is " + h.connection
	}
}

// listOf lists objects of a kind. It returns nil for a kind that is not installed.
func listOf(ctx context.Context, cluster client.Client, kind schema.GroupVersionKind,
	which ...client.ListOption) ([]unstructured.Unstructured, error) {
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := cluster.List(ctx, &found, which...)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return found.Items, err
}

// make makes one of our objects, named after the other cluster.
func (h *half) make(ctx context.Context, kind string, labels map[string]string, owner *unstructured.Unstructured,
	spec map[string]any) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(networking.WithKind(kind))
	object.SetNamespace(h.ns)
	object.SetName(h.peer)
	object.SetLabels(with(h.p.signed(), labels, map[string]string{consts.RemoteClusterID: h.peer}))
	object.SetAnnotations(h.annotations)
	if owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(),
			Name: owner.GetName(), UID: owner.GetUID()}})
	}
	return h.do(ctx, "make the network's "+kind, func(cluster client.Client) error { return cluster.Create(ctx, object) })
}

// repair patches an object's spec where it differs from want. It reports whether the spec already contained want.
// Fields that are not in want, for example fields of a newer Liqo, stay.
func (h *half) repair(ctx context.Context, object *unstructured.Unstructured, want map[string]any) (bool, error) {
	have, _, _ := unstructured.NestedMap(object.Object, "spec")
	if contains(have, want) {
		return true, nil
	}
	return false, h.do(ctx, "patch the network's "+object.GetKind(), func(cluster client.Client) error {
		return nodes.MergePatch(ctx, cluster, object, map[string]any{"spec": want})
	})
}

// contains reports whether have contains every field of want with the same value. It compares numbers in their JSON
// form.
func contains(have, want map[string]any) bool {
	for key, value := range want {
		if inner, ok := value.(map[string]any); ok {
			there, _ := have[key].(map[string]any)
			if !contains(there, inner) {
				return false
			}
			continue
		}
		a, errA := json.Marshal(have[key])
		b, errB := json.Marshal(value)
		if errA != nil || errB != nil || string(a) != string(b) {
			return false
		}
	}
	return true
}

// text returns a string field, or "".
func text(object *unstructured.Unstructured, path ...string) string {
	if object == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

// texts returns a list of strings, or nil.
func texts(object *unstructured.Unstructured, path ...string) []string {
	if object == nil {
		return nil
	}
	value, _, _ := unstructured.NestedStringSlice(object.Object, path...)
	return value
}
