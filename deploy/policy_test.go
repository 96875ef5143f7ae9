package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// holder is who holds an account's token. Everything is tried with dry run: admission judges that too.
type holder struct {
	kube kubernetes.Interface
	liqo dynamic.Interface
}

var (
	dryCreate = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	dryPatch  = metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	dryDelete = metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
)

func (c *cluster) holder(t *testing.T, namespace, account string) holder {
	t.Helper()
	made, err := c.kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return c.withToken(t, made.Status.Token)
}

func (c *cluster) withToken(t *testing.T, token string) (h holder) {
	t.Helper()
	access := rest.AnonymousClientConfig(c.config)
	access.BearerToken = token
	access.QPS, access.Burst = 200, 400
	var err error
	h.kube, err = kubernetes.NewForConfig(access)
	require.NoError(t, err)
	h.liqo, err = dynamic.NewForConfig(access)
	require.NoError(t, err)
	return h
}

func liqoKind(group, name string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: group + ".liqo.io", Version: "v1beta1", Resource: name}
}

func (h holder) createSecret(ctx context.Context, namespace string, change func(*corev1.Secret)) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Annotations: map[string]string{}}}
	change(secret)
	_, err := h.kube.CoreV1().Secrets(namespace).Create(ctx, secret, dryCreate)
	return err
}

func plain(*corev1.Secret) {}

func tokenOf(account string) func(*corev1.Secret) {
	return func(s *corev1.Secret) {
		s.Type = corev1.SecretTypeServiceAccountToken
		s.Annotations[corev1.ServiceAccountNameKey] = account
	}
}

func annotated(s *corev1.Secret) { s.Annotations[corev1.ServiceAccountNameKey] = "default" }

// attempt is one thing that an account tries.
type attempt struct {
	what   string
	denied string // in what refuses it, a policy or a missing right; "" when it is allowed
	try    func(ctx context.Context) error
}

// judge tries the first attempt, which is denied, until it is, because a policy takes a moment to be in force; and then
// all of them.
func judge(t *testing.T, attempts []attempt) {
	t.Helper()
	require.NotEmpty(t, attempts[0].denied)
	require.Eventually(t, func() bool { return refused(attempts[0].try(t.Context()), attempts[0].denied) },
		time.Minute, 200*time.Millisecond, "the policy is not in force: %v", attempts[0].try(t.Context()))
	for _, a := range attempts {
		t.Run(a.what, func(t *testing.T) {
			var err error
			require.Eventually(t, func() bool { // each policy by itself
				err = a.try(t.Context())
				return a.denied == "" && err == nil || a.denied != "" && refused(err, a.denied)
			}, 2*time.Minute, 200*time.Millisecond, "want %q: %v", a.denied, &err)
		})
	}
}

func refused(err error, says string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), says)
}

func (c *cluster) applyCRDs(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		c.kubectl(t, nil, "apply", "--server-side", "-f", filepath.Join(c.bin, "chart", "charts", "liqo-crds", "crds",
			name+".yaml"))
	}
	c.crdsServed(t)
}

// providerDenies: with the token of the consumer's account one gets no other account, and the provider's word holds.
func providerDenies(t *testing.T, c *cluster, h holder) {
	c.applyCRDs(t, "authentication.liqo.io_tenants")
	const namespace = "liqo-tenant-rome"
	admin, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	resource := liqoKind("authentication", "tenants")
	forge := func(name string, spec map[string]any) *unstructured.Unstructured {
		spec["clusterID"] = "rome"
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.liqo.io/v1beta1",
			"kind": "Tenant", "spec": spec}}
		u.SetName(name)
		return u
	}
	for name, condition := range map[string]string{"active": "Active", "cordoned": "Cordoned", "drained": "Drained"} {
		require.Eventually(t, func() bool { // a new kind is served a little later
			_, err = admin.Resource(resource).Namespace(namespace).Create(t.Context(),
				forge(name, map[string]any{"tenantCondition": condition}), metav1.CreateOptions{})
			return err == nil
		}, 2*time.Minute, 200*time.Millisecond, "the last answer: %v", &err)
	}
	tenants := h.liqo.Resource(resource).Namespace(namespace)
	secret := func(change func(*corev1.Secret)) func(context.Context) error {
		return func(ctx context.Context) error { return h.createSecret(ctx, namespace, change) }
	}
	create := func(spec map[string]any) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := tenants.Create(ctx, forge("new", spec), dryCreate)
			return err
		}
	}
	patch := func(name, spec string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := tenants.Patch(ctx, name, types.MergePatchType, []byte(spec), dryPatch)
			return err
		}
	}
	remove := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { return tenants.Delete(ctx, name, dryDelete) }
	}
	foreign := func(ctx context.Context) error {
		u := forge("new", map[string]any{})
		require.NoError(t, unstructured.SetNestedField(u.Object, "milan", "spec", "clusterID"))
		_, err := tenants.Create(ctx, u, dryCreate)
		return err
	}
	judge(t, []attempt{
		{"token of a gateway", "of type Opaque alone", secret(tokenOf("gw-rome"))},
		{"annotation of a token", "names a ServiceAccount", secret(annotated)},
		{"nonce", "", secret(plain)},
		{"cordoned from the start", "a new Tenant is Active", create(map[string]any{"tenantCondition": "Cordoned"})},
		{"without keys", "authzPolicy is KeysExchange", create(map[string]any{"authzPolicy": "TolerateNoHandshake"})},
		{"of another cluster", "of cluster rome", foreign},
		{"Tenant", "", create(map[string]any{})},
		{"lift a cordon", "the provider's to change", patch("cordoned", `{"spec": {"tenantCondition": "Active"}}`)},
		{"lift it by default", "the provider's to change", patch("drained", `{"spec": {"tenantCondition": null}}`)},
		{"cordon itself", "the provider's to change", patch("active", `{"spec": {"tenantCondition": "Cordoned"}}`)},
		{"no keys any longer", "authzPolicy is KeysExchange", patch("active",
			`{"spec": {"authzPolicy": "TolerateNoHandshake"}}`)},
		{"new keys", "", patch("cordoned", `{"spec": {"signature": "eA=="}}`)},
		{"mark", "", patch("drained", `{"metadata": {"labels": {"liqo-autoscaler.io/refused": "Drained"}}}`)},
		{"delete a cordoned one", "the provider's to delete", remove("cordoned")},
		{"delete a drained one", "the provider's to delete", remove("drained")},
		{"delete an active one", "", remove("active")},
	})
}

// escalation is what somebody with the worker's token could become an administrator by.
type escalation struct {
	holder
	account, role string // the worker's, and what it binds itself to in tenant namespaces
}

// admitted binds the worker to its role in a tenant namespace, as it does itself, and sees that it has the rights there
// and nowhere else.
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

// bind binds the worker, or another account, to a role, under the name that it gives back.
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

// prepare makes, once, what workers are not to touch and what they are.
func (c *cluster) prepare(t *testing.T) {
	t.Helper()
	c.applyCRDs(t, "offloading.liqo.io_virtualnodes", "offloading.liqo.io_vkoptionstemplates",
		"authentication.liqo.io_resourceslices")
	c.kubectl(t, nil, "create", "namespace", "liqo-tenant-x")
	c.kubectl(t, nil, "create", "namespace", "liqo-tenant-z")
	c.kubectl(t, nil, "create", "serviceaccount", "default", "-n", "kube-system")
	for _, namespace := range []string{"kube-system", "liqo-tenant-x"} {
		c.kubectl(t, nil, "create", "secret", "generic", "precious", "-n", namespace)
	}
	c.kubectl(t, []byte(`{apiVersion: v1, kind: Node, metadata: {name: real}}
---
{apiVersion: v1, kind: Node, metadata: {name: virtual, labels: {liqo.io/type: virtual-node}}}
---
apiVersion: v1
kind: Pod
metadata: {name: system, namespace: kube-system}
spec: {nodeName: real, automountServiceAccountToken: false, containers: [{name: c, image: "system:1"}]}
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

// workerDenies: with the worker's token one becomes nobody else, and the worker may do its work.
func workerDenies(t *testing.T, e escalation) {
	secret := func(namespace string, change func(*corev1.Secret)) func(context.Context) error {
		return func(ctx context.Context) error { return e.createSecret(ctx, namespace, change) }
	}
	patchSecret := func(namespace string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.kube.CoreV1().Secrets(namespace).Patch(ctx, "precious", types.MergePatchType,
				[]byte(`{"data": {"token": "eA=="}}`), dryPatch)
			return err
		}
	}
	makeNamespace := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.kube.CoreV1().Namespaces().Create(ctx,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, dryCreate)
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
	patchPod := func(patch string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.kube.CoreV1().Pods("kube-system").Patch(ctx, "system", types.StrategicMergePatchType, []byte(patch),
				dryPatch)
			return err
		}
	}
	judge(t, []attempt{
		{"bind itself elsewhere", "RoleBindings in namespaces liqo-tenant-* alone", e.bind("kube-system", e.role, dryCreate)},
		{"bind somebody else", "binds itself alone", e.bind("liqo-tenant-x", e.role, dryCreate, "other")},
		{"bind itself", "", e.bind("liqo-tenant-z", e.role, dryCreate)},
		{"bind another role", "is attempting to grant RBAC permissions", e.bind("liqo-tenant-z", "cluster-admin", dryCreate)},
		{"token of a system account", `cannot create resource "secrets"`, secret("kube-system", tokenOf("default"))},
		{"unbind others", "cannot delete resource", func(ctx context.Context) error {
			return e.kube.RbacV1().RoleBindings("liqo-tenant-x").Delete(ctx, "theirs", dryDelete)
		}},
		{"token of a gateway", "of type Opaque alone", secret("liqo-tenant-x", tokenOf("gw-x"))},
		{"annotation of a token", "names a ServiceAccount", secret("liqo-tenant-x", annotated)},
		{"Secret of others", `cannot patch resource "secrets"`, patchSecret("kube-system")},
		{"nonce", "", secret("liqo-tenant-x", plain)},
		{"change a nonce", "", patchSecret("liqo-tenant-x")},
		{"remove a namespace of others", "namespaces liqo-tenant-* alone", removeNamespace("providers")},
		{"namespace of another name", "namespaces liqo-tenant-* alone", makeNamespace("mine")},
		{"tenant namespace", "", makeNamespace("liqo-tenant-y")},
		{"remove a tenant namespace", "", removeNamespace("liqo-tenant-x")},
		{"node of others", "virtual nodes alone", patchNode("real")},
		{"remove a node of others", "virtual nodes alone", removeNode("real")},
		{"virtual node", "", patchNode("virtual")},
		{"remove a virtual node", "", removeNode("virtual")},
		{"image of a pod of others", "what a pod runs",
			patchPod(`{"spec": {"containers": [{"name": "c", "image": "mine"}]}}`)},
		{"label of a pod", "", patchPod(`{"metadata": {"labels": {"a": "b"}}}`)},
		{"virtual kubelet of another image", "Liqo's own virtual kubelet", e.virtualNode("mine")},
		{"virtual node with Liqo's own", "", e.virtualNode("virtual-kubelet:1")},
	})
}

// virtualNode is one as Liqo's webhook completes it.
func (e escalation) virtualNode(image string) func(context.Context) error {
	none := map[string]any{}
	deployment := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"template": map[string]any{"metadata": none, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": image}}}},
	}
	spec := map[string]any{"clusterID": "x", "template": map[string]any{"metadata": none, "spec": deployment}}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "offloading.liqo.io/v1beta1",
		"kind": "VirtualNode", "spec": spec}}
	u.SetName("x")
	return func(ctx context.Context) error {
		_, err := e.liqo.Resource(liqoKind("offloading", "virtualnodes")).Namespace("liqo-tenant-x").Create(ctx, u,
			dryCreate)
		return err
	}
}

// renews: the account's kubeconfig gets a new token by `provider-access renew`, and for no other account.
func renews(t *testing.T, c *cluster, kubeconfig []byte) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, kubeconfig, 0o600))
	out, err := c.run(t, tool(t, "LIQO_AUTOSCALER"), nil, "provider-access", "renew", "--file", file, "--duration", "20m")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "has a token until ")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotEqual(t, string(kubeconfig), string(after))
	who := c.kubectl(t, nil, "--kubeconfig", file, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	require.Equal(t, "system:serviceaccount:liqo-autoscaler:consumer-rome", who)

	// The Secret of an offer, in the same cluster for want of another.
	c.kubectl(t, nil, "-n", "providers", "create", "secret", "generic", "rome", "--from-file=kubeconfig="+file)
	out, err = c.run(t, tool(t, "LIQO_AUTOSCALER"), nil, "provider-access", "renew", "--secret", "providers/rome")
	require.NoError(t, err, "%s", out)
	secret, err := c.kube.CoreV1().Secrets("providers").Get(t.Context(), "rome", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEqual(t, string(after), string(secret.Data["kubeconfig"]))
	require.Contains(t, string(secret.Data["kubeconfig"]), "consumer-rome")
}
