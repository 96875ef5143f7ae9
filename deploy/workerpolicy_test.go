package deploy_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// escalation contains the data with which an attacker with the worker's token could try to become an administrator.
type escalation struct {
	holder
	account, role string // the worker's account, and the role for its tenant namespaces
	liqo, hub     string // Liqo's namespace, and the worker's hub
}

// admitted binds the worker's account to its role in a tenant namespace, as the worker does. It checks that the
// account then has the role's rights in this namespace, and in no other namespace.
func (c *cluster) admitted(t *testing.T, e escalation) {
	require.Eventually(t, func() bool {
		err := e.bind("liqo-tenant-x", e.role, metav1.CreateOptions{})(t.Context())
		return err == nil || apierrors.IsAlreadyExists(err)
	}, 2*time.Minute, 200*time.Millisecond, "it may bind itself")
	mayAll(t, c, e.account, map[string][]string{"here": {"liqo-tenant-x"}})
	for _, in := range []string{"", "kube-system", "liqo"} {
		mayNot(t, c, e.account, in, "list", "/secrets", "")
		mayNot(t, c, e.account, in, "create", "/secrets", "")
		mayNot(t, c, e.account, in, "patch", "/secrets", "")
	}
}

// bind returns an attempt to bind an account to a role in the namespace `in`. The account is the worker's account,
// unless the parameter `to` contains another one.
func (e escalation) bind(in, role string, o metav1.CreateOptions, to ...string) func(ctx context.Context) error {
	account := append(to, e.account)[0]
	return func(ctx context.Context) error {
		_, err := e.kube.RbacV1().RoleBindings(in).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: e.role + "." + namespace + "." + account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}},
		}, o)
		return err
	}
}

// prepare creates the objects that the worker must not change, and the objects that it uses. It runs once for a
// cluster.
func (c *cluster) prepare(t *testing.T) {
	t.Helper()
	c.applyCRDs(t, "offloading.liqo.io_virtualnodes", "offloading.liqo.io_vkoptionstemplates",
		"authentication.liqo.io_resourceslices", "authentication.liqo.io_identities", "authentication.liqo.io_renews",
		"offloading.liqo.io_namespacemaps", "networking.liqo.io_configurations", "networking.liqo.io_gatewayclients",
		"networking.liqo.io_gatewayservers", "networking.liqo.io_publickeies")
	c.kubectl(t, nil, "create", "namespace", "liqo-tenant-x")
	c.kubectl(t, nil, "create", "namespace", "liqo-tenant-theirs")
	c.kubectl(t, nil, "create", "namespace", "liqo-tenant-z")
	if c.removed != nil { // in this cluster, no controller creates it
		c.kubectl(t, nil, "create", "serviceaccount", "default", "-n", "kube-system")
	}
	for _, namespace := range []string{"kube-system", "liqo-tenant-x"} {
		c.kubectl(t, nil, "create", "secret", "generic", "precious", "-n", namespace)
	}
	c.kubectl(t, nil, "create", "secret", "generic", "liqo-signed-nonce", "-n", "liqo-tenant-x")
	c.kubectl(t, []byte(`{apiVersion: v1, kind: Node, metadata: {name: real}}
---
{apiVersion: v1, kind: Node, metadata: {name: lca-burst-x-1}}
---
{apiVersion: v1, kind: Node, metadata: {name: virtual, labels: {liqo.io/type: virtual-node}}}
---
apiVersion: v1
kind: Secret
metadata:
  name: kubeconfig-controlplane-x
  namespace: liqo-tenant-x
  labels: {liqo.io/identity-type: ControlPlane, liqo.io/remote-cluster-id: x}
  finalizers: [crdreplicator.liqo.io/secret]
---
apiVersion: v1
kind: Pod
metadata: {name: system, namespace: kube-system}
spec: {nodeName: real, automountServiceAccountToken: false, containers: [{name: c, image: "system:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: lent, namespace: kube-system}
spec: {nodeName: lca-burst-x-1, automountServiceAccountToken: false, containers: [{name: c, image: "system:1"}]}
---
{apiVersion: v1, kind: Namespace, metadata: {name: liqo-tenant-of-default, labels: {liqo-autoscaler.io/hub: default}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: liqo-tenant-of-east, labels: {liqo-autoscaler.io/hub: east}}}
---
apiVersion: authentication.liqo.io/v1beta1
kind: ResourceSlice
metadata: {name: held, namespace: liqo-tenant-x, finalizers: [crdreplicator.liqo.io/resource]}
spec: {class: default, providerClusterID: x}
---
apiVersion: authentication.liqo.io/v1beta1
kind: Renew
metadata: {name: held, namespace: liqo-tenant-x, finalizers: [crdreplicator.liqo.io/resource]}
spec: {consumerClusterID: me, identityType: ControlPlane}
---
apiVersion: offloading.liqo.io/v1beta1
kind: NamespaceMap
metadata: {name: held, namespace: liqo-tenant-x, finalizers: [crdreplicator.liqo.io/resource]}
spec: {desiredMapping: {a: b}}
---
apiVersion: offloading.liqo.io/v1beta1
kind: VkOptionsTemplate
metadata: {name: virtual-kubelet-default, namespace: liqo}
spec: {containerImage: "virtual-kubelet:1", createNode: true, disableNetworkCheck: false, metricsEnabled: false}
---
apiVersion: offloading.liqo.io/v1beta1
kind: VkOptionsTemplate
metadata: {name: virtual-kubelet-default, namespace: liqo-system}
spec: {containerImage: "virtual-kubelet:1", createNode: true, disableNetworkCheck: false, metricsEnabled: false}
`), "apply", "-f", "-")
}

// workerDenies checks that an attacker with the worker's token cannot obtain another identity. The worker itself can
// do its work.
func workerDenies(t *testing.T, c *cluster, e escalation) {
	const tenancy, signed, token = "liqo-tenant-x", "liqo-signed-nonce", `{"data": {"token": "eA=="}}`
	secret := func(namespace, name string, changes ...func(*corev1.Secret)) func(context.Context) error {
		return func(ctx context.Context) error { return e.createSecret(ctx, namespace, name, changes...) }
	}
	data := func(key string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data = map[string][]byte{key: []byte("x")} }
	}
	makeNamespace := func(name, hub string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{"liqo-autoscaler.io/hub": hub}}}, dryCreate)
			return err
		}
	}
	removeNamespace := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { return e.kube.CoreV1().Namespaces().Delete(ctx, name, dryDelete) }
	}
	patchNode := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType,
				[]byte(`{"spec": {"unschedulable": true}}`), dryPatch)
			return err
		}
	}
	removeNode := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { return e.kube.CoreV1().Nodes().Delete(ctx, name, dryDelete) }
	}
	patchPod := func(name, patch string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.kube.CoreV1().Pods("kube-system").Patch(ctx, name, types.StrategicMergePatchType, []byte(patch),
				dryPatch)
			return err
		}
	}
	removePod := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return e.kube.CoreV1().Pods("kube-system").Delete(ctx, name, dryDelete)
		}
	}
	powerful := e // the same account, but with an administrator's permissions
	powerful.holder = c.identity(t, "system:serviceaccount:"+namespace+":"+e.account)
	const alone, kubeconfig = "only the Secret liqo-signed-nonce", "could take for a kubeconfig"
	c.judge(t, []attempt{
		{"bind itself elsewhere", "RoleBindings only in namespaces liqo-tenant-*", e.bind("kube-system", e.role, dryCreate)},
		{"bind another account", "binds only itself", e.bind("liqo-tenant-x", e.role, dryCreate, "other")},
		{"bind itself", "", e.bind("liqo-tenant-z", e.role, dryCreate)},
		{"bind another role", "is attempting to grant RBAC permissions", e.bind("liqo-tenant-z", "cluster-admin", dryCreate)},
		{"bind another role, with the permission for it", "binds only its own role", powerful.bind("liqo-tenant-z",
			"cluster-admin", dryCreate)},
		{"a Secret elsewhere, with the permission for it", "Secrets only in namespaces liqo-tenant-*",
			func(ctx context.Context) error { return powerful.createSecret(ctx, "kube-system", signed) }},
		{"token of a system account", `cannot create resource "secrets"`, secret("kube-system", "x", tokenOf("default"))},
		{"unbind others", "cannot delete resource", func(ctx context.Context) error {
			return e.kube.RbacV1().RoleBindings("liqo-tenant-x").Delete(ctx, "theirs", dryDelete)
		}},
		{"token of a gateway", "only Secrets of type Opaque", secret(tenancy, signed, tokenOf("gw-x"))},
		{"annotation of a token", "names a ServiceAccount", secret(tenancy, signed, annotated)},
		{"Secret of others", `cannot patch resource "secrets"`, e.patchSecret("kube-system", "precious", token)},
		{"Secret of another name", alone, secret(tenancy, "x")},
		{"kubeconfig that Liqo loads", kubeconfig, secret(tenancy, signed, labelled(identityType))},
		{"kubeconfig for a virtual kubelet", kubeconfig, secret(tenancy, signed, data("kubeconfig"))},
		{"nonce", "", secret(tenancy, signed, labelled("liqo.io/signed-nonce"), data("nonce"))},
		{"change a nonce", "", e.patchSecret(tenancy, signed, `{"data": {"nonce": "eA=="}}`)},
		{"make a kubeconfig of a nonce", kubeconfig, e.patchSecret(tenancy, signed,
			`{"metadata": {"labels": {"liqo.io/identity-type": "ControlPlane"}}}`)},
		{"another Secret of a tenant namespace", alone, e.patchSecret(tenancy, "precious", token)},
		{"make a kubeconfig of it", alone, e.patchSecret(tenancy, "precious",
			`{"metadata": {"labels": {"liqo.io/identity-type": "ControlPlane"}}}`)},
		{"release Liqo's kubeconfig", "", e.patchSecret(tenancy, "kubeconfig-controlplane-x",
			`{"metadata": {"finalizers": null}}`)},
		{"release and change it", alone, e.patchSecret(tenancy, "kubeconfig-controlplane-x",
			`{"metadata": {"finalizers": null}, "data": {"kubeconfig": "eA=="}}`)},
		{"release and hide it", alone, e.patchSecret(tenancy, "kubeconfig-controlplane-x",
			`{"metadata": {"finalizers": null, "labels": null}}`)},
		{"remove a namespace of others", "only namespaces liqo-tenant-*", removeNamespace("providers")},
		{"namespace of another name", "only namespaces liqo-tenant-*", makeNamespace("mine", e.hub)},
		{"tenant namespace", "", makeNamespace("liqo-tenant-y", e.hub)},
		{"tenant namespace of another hub", "only namespaces of its own hub", makeNamespace("liqo-tenant-y", "other")},
		{"remove a tenant namespace", "", removeNamespace("liqo-tenant-of-" + e.hub)},
		{"remove a tenant namespace of others", "only namespaces of its own hub", removeNamespace("liqo-tenant-theirs")},
		{"node of others", "only virtual nodes", patchNode("real")},
		{"remove a node of others", "only virtual nodes", removeNode("real")},
		{"virtual node", "", patchNode("virtual")},
		{"remove a virtual node", "", removeNode("virtual")},
		{"image of a pod", "the spec of a pod", patchPod("lent", `{"spec": {"containers": [{"name": "c", "image": "mine"}]}}`)},
		{"label of a pod", "", patchPod("lent", `{"metadata": {"labels": {"a": "b"}}}`)},
		{"remove a pod", "", removePod("lent")},
		{"label of a pod of others", "only on its own virtual nodes", patchPod("system",
			`{"metadata": {"labels": {"a": "b"}}}`)},
		{"remove a pod of others", "only on its own virtual nodes", removePod("system")},
	})
	t.Run("liqo", func(t *testing.T) { workerForLiqo(t, c, e) })
	t.Run("virtualnodes", func(t *testing.T) { virtualNodesDeny(t, c, e) })
}
