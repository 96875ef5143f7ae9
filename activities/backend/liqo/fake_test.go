package liqo

import (
	"context"
	"encoding/pem"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const (
	me   = "consumer"
	peer = "provider1"

	localNS  = "liqo-tenant-" + peer
	remoteNS = "liqo-tenant-" + me
)

// clusters are a consumer and a provider without controllers. The test creates the objects that Liqo would create.
type clusters struct {
	*Backend
	there client.Client
	down  bool // the provider does not answer
	opens int  // number of reads of its credentials
}

func newClusters(t *testing.T, here, there []client.Object) *clusters {
	t.Helper()
	build := func(id string, objects []client.Object) client.WithWatch {
		scheme, err := newScheme()
		require.NoError(t, err)
		for _, kind := range append([]string{kindConnection}, made...) {
			scheme.AddKnownTypeWithName(networking.WithKind(kind), &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(networking.WithKind(kind+"List"), &unstructured.UnstructuredList{})
		}
		scheme.AddKnownTypeWithName(ipam.WithKind("Network"), &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(ipam.WithKind("NetworkList"), &unstructured.UnstructuredList{})
		return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(newMapper()).
			WithObjects(append(objects, clusterID(id), kubeSystem(id))...).
			WithIndex(&corev1.Pod{}, "spec.nodeName",
				func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
			WithIndex(&corev1.Event{}, "involvedObject.uid",
				func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }).
			Build()
	}
	c := &clusters{there: build(peer, there)}
	config := Config{UnreachableAfter: 100 * time.Millisecond, ForceAfter: time.Millisecond, DenyAfter: time.Millisecond}
	local := build(me, here)
	c.Backend = &Backend{config: config.withDefaults(), local: local, watch: local,
		graces: graces{answer: time.Millisecond, renew: time.Millisecond, register: time.Millisecond,
			kubelet: time.Millisecond, namespaceMap: time.Millisecond, release: time.Millisecond}}
	c.open = func(context.Context, fleet.Credentials) (client.Client, error) {
		c.opens++
		if c.down {
			return nil, errorf(backend.ErrUnreachable, "connection refused")
		}
		return c.there, nil
	}
	return c
}

// kubeSystem returns the namespace kube-system. Its UID distinguishes a cluster from its clones.
func kubeSystem(id string) *corev1.Namespace {
	system := &corev1.Namespace{ObjectMeta: named("", metav1.NamespaceSystem,
		map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem})}
	system.UID = types.UID("uid-of-" + id)
	return system
}

func clusterID(id string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "clusterid",
			Labels: map[string]string{consts.K8sAppNameKey: consts.ClusterIDConfigMapNameLabelValue}},
		Data: map[string]string{consts.ClusterIDConfigMapKey: id},
	}
}

// mine returns the labels of this hub's objects. labelled sets these labels on an object.
func mine() map[string]string {
	return map[string]string{backend.LabelManagedBy: backend.ManagedBy, backend.LabelHub: "default", labelConsumer: me}
}

func named(namespace, name string, labels ...map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: with(labels...)}
}

func of(cluster string) map[string]string { return map[string]string{consts.RemoteClusterID: cluster} }

func tenantNS(cluster string, labels ...map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: named("", "liqo-tenant-"+cluster,
		append(labels, of(cluster), map[string]string{consts.TenantNamespaceLabel: "true"})...)}
}

func controlPlane(labels ...map[string]string) *authv1beta1.Identity {
	return &authv1beta1.Identity{
		ObjectMeta: named(localNS, "controlplane-"+peer, append(labels, of(peer))...),
		Spec:       authv1beta1.IdentitySpec{ClusterID: peer, Type: authv1beta1.ControlPlaneIdentityType},
		Status: authv1beta1.IdentityStatus{
			KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "kubeconfig-controlplane-" + peer},
		},
	}
}

func controlPlaneSecret() *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: named(localNS, "kubeconfig-controlplane-"+peer, of(peer),
		map[string]string{consts.IdentityTypeLabelKey: string(authv1beta1.ControlPlaneIdentityType)})}
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "authentication.liqo.io/v1beta1", Kind: "Identity",
		Name: "controlplane-" + peer, UID: "1"}}
	return secret
}

func tenantOf(labels ...map[string]string) *authv1beta1.Tenant {
	return &authv1beta1.Tenant{ObjectMeta: named(remoteNS, me, append(labels, of(me))...),
		Spec: authv1beta1.TenantSpec{ClusterID: me}}
}

func established() *liqov1beta1.ForeignCluster {
	return &liqov1beta1.ForeignCluster{
		ObjectMeta: named("", peer, of(peer)),
		Status: liqov1beta1.ForeignClusterStatus{
			Modules: liqov1beta1.Modules{Authentication: liqov1beta1.Module{Enabled: true}},
			Conditions: []liqov1beta1.Condition{{Type: liqov1beta1.APIServerStatusCondition,
				Status: liqov1beta1.ConditionStatusEstablished}},
		},
	}
}

// keys returns the consumer's key pair, stored in the same way as Liqo stores it.
func keys(t *testing.T) (secret *corev1.Secret, h handshake) {
	t.Helper()
	private, public, err := authentication.GenerateEd25519Keys()
	require.NoError(t, err)
	secret = &corev1.Secret{ObjectMeta: named("liqo", consts.AuthKeysSecretName),
		Data: map[string][]byte{consts.PrivateKeyField: private, consts.PublicKeyField: public}}
	block, _ := pem.Decode(public)
	return secret, handshake{publicDER: block.Bytes}
}

// provider returns a provider whose offer has no network.
func provider() fleet.Provider {
	p := known()
	p.Network = &fleet.Network{Mode: fleet.NetworkNone}
	return p
}

// known returns the provider with only the fields that a recovery reads from our objects.
func known() fleet.Provider {
	return fleet.Provider{ID: peer, Credentials: fleet.Credentials{KubeconfigFile: "provider1.kubeconfig"}}
}

func someAttempt(number int) fleet.Attempt {
	return fleet.Attempt{Group: "g", Instance: "g-abc-1", Number: number, Provider: known()}
}

func shape(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

func exists(t *testing.T, cluster client.Client, object client.Object) bool {
	t.Helper()
	err := cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// soon returns a context for a call of the backend that never succeeds. The context is long enough for the call to
// begin its wait, even on a slow machine.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// prompt returns a context for a call of the backend that does not have to wait.
func prompt(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// seconds returns a context for a call of the backend that waits several times. It lasts longer than the context that
// the function `soon` returns.
func seconds(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	t.Cleanup(cancel)
	return ctx
}
