package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// A real API server accepts the chart and the provider's manifest. It admits the pods at Pod Security's strictest
// level. The accounts have exactly the rights that they need.
func TestInstall(t *testing.T) {
	c := startCluster(t)
	for _, name := range []string{namespace, "liqo", "liqo-system", "providers", "partners"} {
		c.kubectl(t, nil, "create", "namespace", name)
	}
	c.kubectl(t, nil, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	c.kubectl(t, operatorCRDs(), "apply", "--server-side", "-f", "-")
	c.crdsServed(t)

	c.prepare(t)

	t.Run("mirror", func(t *testing.T) { mirrorWrites(t, c) })
	for _, set := range valueSets {
		t.Run(set, func(t *testing.T) { installs(t, c, set) })
	}
	t.Run("bundled", func(t *testing.T) { bundledInstalls(t, c) })
	t.Run("microvm", func(t *testing.T) { machinesAlone(t, c) })
	t.Run("provider", func(t *testing.T) { providerGrants(t, c) })
}

func installs(t *testing.T, c *cluster, set string) {
	manifest, err := template(t, "--values", valuesFile(set), "--skip-tests")
	require.NoError(t, err, "%s", manifest)
	out := c.kubectl(t, manifest, "apply", "--server-side", "--dry-run=server", "-f", "-")
	require.Equal(t, len(decode(t, manifest)), strings.Count(out, "serverside-applied (server dry run)"), "%s", out)

	notes, err := c.run(t, tool(t, "HELM"), nil, "install", release, chart, "-n", namespace, "--values", valuesFile(set))
	require.NoError(t, err, "%s", notes)
	defer func() {
		out, err := c.run(t, tool(t, "HELM"), nil, "uninstall", release, "-n", namespace)
		require.NoError(t, err, "%s", out)
	}()
	objects := decode(t, manifest)
	checkNotes(t, set, notes)
	account := nameOf(set) + "-worker"
	if set == "existing" { // the chart does not create this account
		c.kubectl(t, nil, "create", "serviceaccount", account, "-n", namespace)
	}
	for _, deployment := range all[appsv1.Deployment](objects) {
		pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
		pod.Name = deployment.Name
		created, err := c.kube.CoreV1().Pods(namespace).Create(t.Context(), pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		require.NoError(t, err)
		require.Equal(t, pod.Spec.AutomountServiceAccountToken, created.Spec.AutomountServiceAccountToken)
	}

	liqo := "liqo"
	if set == "existing" {
		liqo = "liqo-system"
		mayAll(t, c, account, map[string][]string{"credentials": {"providers", "partners"}, "offers": {"providers"}})
	}
	mayAll(t, c, account, map[string][]string{"cluster": {"liqo-tenant-x", ""}, "liqo": {liqo}})
	mayNot(t, c, account, liqo, "get", "/secrets", "other")
	e := escalation{c.holder(t, namespace, account), account, nameOf(set) + "-worker-tenant", liqo, "default"}
	if set == "certmanager" {
		e.hub = "east"
	}
	c.admitted(t, e)
	mayNot(t, c, account, "kube-system", "get", "/secrets", "any")
	mayNot(t, c, account, "kube-system", "delete", "/secrets", "any")
	mayNot(t, c, account, "", "create", "/nodes", "")
	mayNot(t, c, account, "default", "create", "/pods", "")
	mayNot(t, c, account, "liqo-tenant-x", "patch", tenant, "x")
	mayNot(t, c, account, "liqo-tenant-x", "update", slice, "x")
	mayNot(t, c, nameOf(set)+"-grpcserver", namespace, "get", "/configmaps", nameOf(set)+"-nodegroups")
	if set == "plaintext" {
		mayNot(t, c, account, namespace, "get", "/secrets", "turin") // the worker's offers name only the Secret milan
		showsEvents(t, c, account)
		leadsHub(t, c, account, nameOf(set)+"-grpcserver", "default")
	}
	t.Run("renewal", func(t *testing.T) { c.renewalDenies(t, set) })
	t.Run("policies", func(t *testing.T) {
		workerDenies(t, c, e)
		c.eachWasRemoved(t)
	})
	if set == "certmanager" { // no process runs here, but doctor can examine the account's rights
		require.Equal(t, []string{"autoscaler-missing", "certificate-unreadable", "liqo-missing", "not-offloaded",
			"server-not-ready", "temporal-unreachable", "worker-not-ready"}, doctorFinds(t, c))
	}
	ownsVirtualNode(t, c, account)
}

// ownsVirtualNode acts as the worker, with Liqo's own CRDs. It creates a slice, and a VirtualNode whose owner
// reference blocks the deletion of the slice.
func ownsVirtualNode(t *testing.T, c *cluster, account string) {
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + account
	as, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	slices := as.Resource(apischema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1",
		Resource: "resourceslices"}).Namespace("liqo-tenant-x")
	virtuals := as.Resource(apischema.GroupVersionResource{Group: "offloading.liqo.io", Version: "v1beta1",
		Resource: "virtualnodes"}).Namespace("liqo-tenant-x")
	forge := func(kind, group string, spec map[string]any, owners ...metav1.OwnerReference) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1beta1", "kind": kind, "spec": spec}}
		u.SetName("x")
		u.SetOwnerReferences(owners)
		return u
	}
	owner, err := slices.Create(t.Context(), forge("ResourceSlice", "authentication.liqo.io",
		map[string]any{"class": "default", "providerClusterID": "p"}), metav1.CreateOptions{})
	require.NoError(t, err)
	yes := true
	reference := metav1.OwnerReference{APIVersion: "authentication.liqo.io/v1beta1", Kind: "ResourceSlice", Name: "x",
		UID: owner.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}
	require.Eventually(t, func() bool { // a new CRD needs a moment until admission knows it
		_, err = virtuals.Create(t.Context(), forge("VirtualNode", "offloading.liqo.io", map[string]any{"clusterID": "p"},
			reference), metav1.CreateOptions{})
		return err == nil
	}, 2*time.Minute, 200*time.Millisecond, "the last answer: %v", &err)
	require.NoError(t, virtuals.Delete(t.Context(), "x", metav1.DeleteOptions{}))
	require.NoError(t, slices.Delete(t.Context(), "x", metav1.DeleteOptions{}))
	require.True(t, apierrors.IsForbidden(virtuals.DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{})))
}

// checkNotes checks the values for CA's chart in NOTES.txt: they are valid YAML and equal deploy/ca/values.yaml.
func checkNotes(t *testing.T, set, notes string) {
	_, block, found := strings.Cut(notes, "Use these values with CA's own chart")
	require.True(t, found, "%s", notes)
	_, block, _ = strings.Cut(block, ":\n\n")
	block, _, _ = strings.Cut(block, "\n\n")
	var printed, file map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(block), &printed), "%s", block)
	raw, err := os.ReadFile("ca/values.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &file))
	require.Equal(t, file["cloudProvider"], printed["cloudProvider"])
	require.NotEmpty(t, printed["autoDiscovery"])
	require.Equal(t, file["extraArgs"], printed["extraArgs"])
	volumes := printed["extraVolumeSecrets"].(map[string]any)
	switch set {
	case "certmanager":
		require.Equal(t, file["extraVolumeSecrets"], volumes)
	case "plaintext":
		require.Len(t, volumes, 1)
		require.Contains(t, notes, "WARNING: tls.plaintext is set")
	default:
		require.Contains(t, notes, "Create CLIENT-SECRET in namespace kube-system")
	}
}

// mayAll checks that the account has the rights in the tables of rights_test.go. places maps the places in the tables
// to the namespaces in which they are checked.
func mayAll(t *testing.T, c *cluster, account string, places map[string][]string) {
	t.Helper()
	for place, namespaces := range places {
		for _, r := range needed(place) {
			r.name = strings.ReplaceAll(r.name, "lender", strings.TrimSuffix(account, "-worker"))
			for _, in := range namespaces {
				if !may(t, c, account, in, r.verb, r.resource, r.name) { // new roles take effect after a moment
					require.Eventually(t, func() bool { return may(t, c, account, in, r.verb, r.resource, r.name) },
						time.Minute, 100*time.Millisecond, "%s may not %s %s %q in namespace %q", account, r.verb, r.resource, r.name,
						in)
				}
			}
		}
	}
}

func mayNot(t *testing.T, c *cluster, account, in, verb, resource, name string) {
	t.Helper()
	require.False(t, may(t, c, account, in, verb, resource, name), "%s may %s %s %q in namespace %q", account, verb,
		resource, name, in)
}

func may(t *testing.T, c *cluster, account, in, verb, resource, name string) bool {
	t.Helper()
	group, resource, _ := strings.Cut(resource, "/")
	resource, sub, _ := strings.Cut(resource, "/")
	review, err := c.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account),
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace,
					"system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: in, Verb: verb, Group: group, Resource: resource,
					Subresource: sub, Name: name},
			},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.Allowed
}

// providerGrants checks that the consumer's account on a provider has the rights in the table. It has no rights in
// the namespaces of other consumers. The kubeconfig of the account works.
func providerGrants(t *testing.T, c *cluster) {
	binary := tool(t, "LIQO_AUTOSCALER")
	raw, err := exec.CommandContext(t.Context(), binary, "provider-access", "--consumer-id", "rome").Output()
	require.NoError(t, err)
	c.kubectl(t, raw, "apply", "--server-side", "-f", "-")
	for place, in := range map[string]string{"tenant": "liqo-tenant-rome", "provider liqo": "liqo", "itself": "",
		"account": namespace} {
		for _, r := range needed(place) {
			name := strings.ReplaceAll(r.name, "munich", "rome")
			require.Eventually(t, func() bool { return may(t, c, "consumer-rome", in, r.verb, r.resource, name) },
				time.Minute, 100*time.Millisecond, "may not %s %s in %q", r.verb, r.resource, in)
		}
	}
	mayNot(t, c, "consumer-rome", "", "list", "/namespaces", "")
	mayNot(t, c, "consumer-rome", "", "get", "/namespaces", "liqo-tenant-other")
	mayNot(t, c, "consumer-rome", "liqo-tenant-other", "list", "/secrets", "")
	mayNot(t, c, "consumer-rome", "liqo", "get", "/secrets", "authentication-keys")
	mayNot(t, c, "consumer-rome", "liqo-tenant-rome", "create", "/pods", "")
	mayNot(t, c, "consumer-rome", "", "list", "/nodes", "")

	mayNot(t, c, "consumer-rome", namespace, "create", "/serviceaccounts/token", "consumer-other")

	cmd := exec.CommandContext(t.Context(), binary, "provider-access", "kubeconfig", "--consumer-id", "rome", "--server",
		c.config.Host, "--kubeconfig", c.kubeconfig)
	kubeconfig, err := cmd.Output()
	require.NoError(t, err, "%s", kubeconfig)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, kubeconfig, 0o600))
	out := c.kubectl(t, nil, "--kubeconfig", file, "get", "namespace", "liqo-tenant-rome", "-o", "name")
	require.Equal(t, "namespace/liqo-tenant-rome\n", out)
	out = c.kubectl(t, nil, "--kubeconfig", file, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	require.Equal(t, "system:serviceaccount:liqo-autoscaler:consumer-rome", out)

	for _, id := range doctorFinds(t, c, "--provider-kubeconfig", file) {
		require.NotContains(t, id, "provider-", "the account has its rights")
	}
	t.Run("policies", func(t *testing.T) {
		providerDenies(t, c, c.holder(t, namespace, "consumer-rome"))
		c.eachWasRemoved(t)
	})
	t.Run("renew", func(t *testing.T) { renews(t, c, kubeconfig) })
	t.Run("revoke", func(t *testing.T) { revokes(t, c, file) })
}

// operatorCRDs returns CRDs for the kinds of operators, so that the API server can store our objects of these kinds.
// The types of these objects are in operators_test.go.
func operatorCRDs() []byte {
	var all bytes.Buffer
	for _, crd := range [][3]string{{"cert-manager.io", "Certificate", "certificates"}, {"cert-manager.io", "Issuer",
		"issuers"}, {"monitoring.coreos.com", "ServiceMonitor", "servicemonitors"},
		{"monitoring.coreos.com", "PrometheusRule", "prometheusrules"}} {
		fmt.Fprintf(&all, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[2]s, plural: %[3]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, crd[0], crd[1], crd[2])
	}
	return all.Bytes()
}
