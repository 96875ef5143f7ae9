package deploy_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const consumerNamespace = "liqo-tenant-rome" // the namespace of the consumer rome

var tenants = liqoKind("authentication", "tenants")

// providerDenies checks that no identity of the consumer can gain the permissions of another account, or undo the
// provider's refusal.
func providerDenies(t *testing.T, c *cluster, h holder) {
	c.applyCRDs(t, "authentication.liqo.io_tenants", "authentication.liqo.io_resourceslices",
		"authentication.liqo.io_renews", "networking.liqo.io_configurations", "networking.liqo.io_gatewayclients",
		"networking.liqo.io_gatewayservers", "networking.liqo.io_publickeies", "offloading.liqo.io_namespacemaps",
		"offloading.liqo.io_shadowpods")
	t.Run("secrets", func(t *testing.T) { consumerSecrets(t, c, h) })
	t.Run("slices", func(t *testing.T) { consumerSlices(t, c) })
	t.Run("network", func(t *testing.T) { consumerNetwork(t, c, h) })
	t.Run("networks", func(t *testing.T) { consumerNetworks(t, c, h) })
	t.Run("tenant", func(t *testing.T) { consumerTenant(t, c, h) })
	t.Run("namespaces", func(t *testing.T) { consumerNamespaces(t, c, h) })
	t.Run("pods", func(t *testing.T) { consumerPods(t, c) })
	t.Run("token", func(t *testing.T) { consumerToken(t, c, h) })
	t.Run("services", func(t *testing.T) { consumerServices(t, c) })
}

// consumerIdentities returns the identities that a consumer has on a provider, apart from its account.
func consumerIdentities(t *testing.T, c *cluster) map[string]holder {
	return map[string]holder{
		"control plane": c.identity(t, "rome", "liqo.io"),
		"slice":         c.identity(t, "group-00000-1a2b3c4d5e6f", "rome"),
		"peering user":  c.identity(t, "liqo-peer-user-rome-00112233445566778899aabbccddeeff", "liqo.io"),
	}
}

// consumerToken checks how the account renews its own token. The new token must expire within 90 days.
func consumerToken(t *testing.T, c *cluster, h holder) {
	days := func(n int64) func(context.Context) error {
		seconds := n * 24 * 3600
		return func(ctx context.Context) error {
			_, err := h.kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "consumer-rome",
				&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, dryCreate)
			return err
		}
	}
	c.judge(t, []attempt{{"91 days", "ends within 90 days", days(91)}, {"90 days", "", days(90)}})
}

// consumerSecrets checks that the account can write only the Secret with its nonce. No identity of the consumer can
// create a Secret that Liqo would use as a kubeconfig.
func consumerSecrets(t *testing.T, c *cluster, h holder) {
	secret := func(name string, changes ...func(*corev1.Secret)) func(context.Context) error {
		return func(ctx context.Context) error { return h.createSecret(ctx, consumerNamespace, name, changes...) }
	}
	remove := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return h.kube.CoreV1().Secrets(consumerNamespace).Delete(ctx, name, dryDelete)
		}
	}
	for _, name := range []string{"liqo-nonce", "liqo-remote-certificate", "liqo-remote-certificate-a", "gw-keys"} {
		c.kubectl(t, nil, "create", "secret", "generic", name, "-n", consumerNamespace)
	}
	const kubeconfig = "kubeconfig-controlplane-rome"
	c.kubectl(t, nil, "create", "secret", "generic", kubeconfig, "-n", consumerNamespace)
	c.kubectl(t, nil, "label", "secret", kubeconfig, "-n", consumerNamespace, identityType+"=ControlPlane")
	const alone, loads = "only the Secret liqo-nonce", "Liqo loads a Secret labelled"
	attempts := []attempt{
		{"token of a gateway", "only Secrets of type Opaque", secret("liqo-nonce", tokenOf("gw-rome"))},
		{"annotation of a token", "names a ServiceAccount", secret("liqo-nonce", annotated)},
		{"kubeconfig that Liqo loads", loads, secret("liqo-nonce", labelled(identityType))},
		{"kubeconfig of another name", loads, secret("x", labelled(identityType))},
		{"nonce that Liqo signs", loads, secret("liqo-nonce", labelled("liqo.io/signed-nonce"))},
		{"nonce", "", secret("liqo-nonce", labelled("liqo.io/nonce"))},
		{"Secret of another name", alone, secret("x")},
		{"mark a nonce", "", h.patchSecret(consumerNamespace, "liqo-nonce",
			`{"metadata": {"labels": {"liqo-autoscaler.io/refused": "Drained"}}}`)},
		{"make a kubeconfig of a nonce", loads, h.patchSecret(consumerNamespace, "liqo-nonce",
			`{"metadata": {"labels": {"liqo.io/identity-type": "ControlPlane"}}}`)},
		{"delete a nonce", "", remove("liqo-nonce")},
		{"delete the certificate of a slice", "", remove("liqo-remote-certificate-a")},
		{"delete the consumer's certificate", alone, remove("liqo-remote-certificate")},
		{"delete the keys of a gateway", alone, remove("gw-keys")},
		{"delete a kubeconfig of Liqo's", loads, remove(kubeconfig)},
	}
	for who, is := range consumerIdentities(t, c) {
		attempts = append(attempts,
			attempt{who + ": kubeconfig that Liqo loads", loads, func(ctx context.Context) error {
				return is.createSecret(ctx, "default", "x", labelled(identityType))
			}},
			attempt{who + ": label taken off", loads, is.patchSecret(consumerNamespace, kubeconfig,
				`{"metadata": {"labels": {"liqo.io/identity-type": null}}}`)},
			attempt{who + ": a Secret of its pods", "", func(ctx context.Context) error {
				return is.createSecret(ctx, "default", "x", func(s *corev1.Secret) {
					s.Type, s.Data = corev1.SecretTypeBasicAuth, map[string][]byte{"username": []byte("u")}
				})
			}})
	}
	other := c.identity(t, "turin", "liqo.io") // another consumer, without policies in this test
	attempts = append(attempts, attempt{"another consumer", "", func(ctx context.Context) error {
		return other.createSecret(ctx, "default", "x", labelled(identityType))
	}})
	c.judge(t, attempts)
}

// identityType is the label by which Liqo finds the Secrets that contain its kubeconfigs.
const identityType = "liqo.io/identity-type"

// consumerTenant checks that the consumer can write its own Tenant, except the fields with which the provider refuses
// the consumer.
func consumerTenant(t *testing.T, c *cluster, h holder) {
	forge := func(name string, spec map[string]any,
		changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := liqoObject("Tenant", consumerNamespace, name, spec)
		spec["clusterID"] = "rome"
		u.SetLabels(map[string]string{remoteID: "rome"})
		for _, change := range changes {
			change(u)
		}
		return u
	}
	create := func(spec map[string]any, changes ...func(*unstructured.Unstructured)) func(context.Context) error {
		return h.createLiqo(tenants, consumerNamespace, forge("new", spec, changes...))
	}
	patch := func(change string) func(context.Context) error {
		return h.patch(tenants, consumerNamespace, "rome", change)
	}
	remove := func(ctx context.Context) error {
		return h.liqo.Resource(tenants).Namespace(consumerNamespace).Delete(ctx, "rome", dryDelete)
	}
	label := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{key: value}) }
	}
	foreign := func(u *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(u.Object, "milan", "spec", "clusterID"))
	}
	kept := func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"mine.example/keep"}) }
	const owners = "owners and finalizers of a Tenant"
	key := newKey(t)
	requests := func(cn string, organizations ...string) map[string]any {
		return map[string]any{"publicKey": key.public(t), "csr": key.request(t, cn, organizations...)}
	}
	c.judge(t, []attempt{
		{"cordoned from the start", "a new Tenant is Active", create(map[string]any{"tenantCondition": "Cordoned"})},
		{"without keys", "authzPolicy is KeysExchange", create(map[string]any{"authzPolicy": "TolerateNoHandshake"})},
		{"of another cluster", "the Tenant belongs to cluster rome", create(map[string]any{}, foreign)},
		{"unchecked by Liqo", "webhook-skip", create(map[string]any{}, label(webhookSkip, "true"))},
		{"under another cluster's label", "remote-cluster-id of the Tenant", create(map[string]any{},
			label(remoteID, "milan"))},
		{"with a finalizer", owners, create(map[string]any{}, kept)},
		{"Tenant", "", create(map[string]any{})},
		{"Tenant with its key", "", create(requests("rome", "liqo.io"))},
		{"of several organizations", oneOrganization, create(requests("rome", "liqo.io", "a"))},
	})
	// There is never more than one Tenant, because Liqo permits only one Tenant in a namespace.
	tenant := func(condition string, attempts []attempt, changes ...func(*unstructured.Unstructured)) {
		c.withTenant(t, forge("rome", map[string]any{"tenantCondition": condition}, changes...), attempts)
	}
	tenant("Active", []attempt{
		{"cordon itself", "the provider's to change", patch(`{"spec": {"tenantCondition": "Cordoned"}}`)},
		{"no keys any longer", "authzPolicy is KeysExchange", patch(`{"spec": {"authzPolicy": "TolerateNoHandshake"}}`)},
		{"finalizer", owners, patch(`{"metadata": {"finalizers": ["mine.example/keep"]}}`)},
		{"delete an active one", "", remove},
	})
	tenant("Cordoned", []attempt{
		{"lift a cordon", "the provider's to change", patch(`{"spec": {"tenantCondition": "Active"}}`)},
		{"new keys", "", patch(`{"spec": {"signature": "eA=="}}`)},
		{"delete a cordoned one", "the provider's to delete", remove},
	})
	tenant("Drained", []attempt{
		{"lift it by default", "the provider's to change", patch(`{"spec": {"tenantCondition": null}}`)},
		{"hide it from Liqo", "remote-cluster-id of the Tenant",
			patch(`{"metadata": {"labels": {"liqo.io/remote-cluster-id": "hidden"}}}`)},
		{"take the label off", "remote-cluster-id of the Tenant",
			patch(`{"metadata": {"labels": {"liqo.io/remote-cluster-id": null}}}`)},
		{"have Liqo check it no longer", "webhook-skip",
			patch(`{"metadata": {"labels": {"liqo.io/webhook-skip": "true"}}}`)},
		{"have the garbage collector delete it", owners, patch(`{"metadata": {"ownerReferences": [
			{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-0000-0000-000000000000"}]}}`)},
		{"mark", "", patch(`{"metadata": {"labels": {"liqo-autoscaler.io/refused": "Drained"}}}`)},
		{"delete a drained one", "the provider's to delete", remove},
	})
	tenant("Drained", []attempt{{"no finalizer", owners, patch(`{"metadata": {"finalizers": null}}`)}}, kept)
	tenant("Active", []attempt{
		{"have Liqo check it again", "webhook-skip", patch(`{"metadata": {"labels": {"liqo.io/webhook-skip": null}}}`)},
		{"new keys where the provider skips the webhook", "", patch(`{"spec": {"signature": "eA=="}}`)},
	}, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{remoteID: "rome", webhookSkip: "true"})
	})
}

// withTenant creates the Tenant, makes the attempts, and removes the Tenant.
func (c *cluster) withTenant(t *testing.T, tenant *unstructured.Unstructured, attempts []attempt) {
	t.Helper()
	c.createServed(t, tenants, tenant)
	c.judge(t, attempts)
	admin, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	in := admin.Resource(tenants).Namespace(tenant.GetNamespace())
	testkit.Until(t, 2*time.Minute, "the Tenant is gone", func() error {
		_, err := in.Patch(t.Context(), tenant.GetName(), types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`),
			metav1.PatchOptions{})
		if err == nil {
			err = in.Delete(t.Context(), tenant.GetName(), metav1.DeleteOptions{})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errStillThere)
	})
}

var errStillThere = errors.New("it is still there")

// These constants are labels of Liqo.
const (
	remoteID    = "liqo.io/remote-cluster-id"
	webhookSkip = "liqo.io/webhook-skip"
	originID    = "liqo.io/originID"
)
