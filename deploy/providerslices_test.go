package deploy_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

var (
	sliceKind = liqoKind("authentication", "resourceslices")
	renewKind = liqoKind("authentication", "renews")
)

// oneOrganization is a part of the messages that refuse certificate requests.
const oneOrganization = "one organization"

// consumerKey is the private key with which a consumer proves its identity.
type consumerKey struct{ crypto.Signer }

func newKey(t *testing.T) consumerKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return consumerKey{key}
}

// encoded returns a PEM block in base64, as the API server stores it in a field of bytes.
func encoded(kind string, der []byte) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func (k consumerKey) public(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	require.NoError(t, err)
	return encoded("PUBLIC KEY", der)
}

// request returns a certificate request in the form in which Liqo creates it (Liqo
// pkg/liqo-controller-manager/authentication/csr.go).
func (k consumerKey) request(t *testing.T, cn string, organizations ...string) string {
	t.Helper()
	subject, err := asn1.Marshal(pkix.Name{CommonName: cn, Organization: organizations}.ToRDNSequence())
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{RawSubject: subject}, k.Signer)
	require.NoError(t, err)
	return encoded("CERTIFICATE REQUEST", der)
}

// sliceName returns the common name in the certificate for a slice of the consumer rome.
func sliceName(slice string) string {
	return fmt.Sprintf("%s-%x", slice, sha256.New().Sum(nil)[:6])
}

// replicated sets the labels that rome's crd-replicator sets on rome's objects on a provider.
func replicated(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetLabels(map[string]string{originID: "rome", "liqo.io/replicated": "true", "liqo.io/replication": "false",
		"liqo.io/remoteID": "milan", remoteID: "rome"})
	return u
}

// consumerSlices checks that a consumer's Liqo can request slices and certificates only for this consumer. It cannot
// grant its own requests.
func consumerSlices(t *testing.T, c *cluster) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for name, key := range map[string]consumerKey{"Ed25519": newKey(t), "RSA": {rsaKey}} {
		t.Run(name, func(t *testing.T) { slicesOf(t, c, key, consumerKey{ecKey}) })
	}
}

// slicesOf makes the attempts for a Tenant with the given key. foreign is a key of another type.
func slicesOf(t *testing.T, c *cluster, key, foreign consumerKey) {
	admin, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	ctx := context.WithoutCancel(t.Context())
	make := func(kind string, u *unstructured.Unstructured) {
		t.Helper()
		c.createServed(t, liqoKind("authentication", kind), u)
		t.Cleanup(func() {
			require.NoError(t, admin.Resource(liqoKind("authentication", kind)).Namespace(consumerNamespace).Delete(ctx,
				u.GetName(), metav1.DeleteOptions{}))
		})
	}
	own := key.request(t, "rome", "liqo.io")
	make("tenants", liqoObject("Tenant", consumerNamespace, "rome", map[string]any{"clusterID": "rome",
		"publicKey": key.public(t), "csr": own}))
	slice := func(name string, spec map[string]any,
		changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := replicated(liqoObject("ResourceSlice", consumerNamespace, name, map[string]any{"consumerClusterID": "rome",
			"class": "liqo-autoscaler", "resources": map[string]any{"cpu": "1500m", "memory": "4Gi"},
			"csr": key.request(t, sliceName(name), "rome")}))
		for field, value := range spec {
			require.NoError(t, unstructured.SetNestedField(u.Object, value, "spec", field))
		}
		for _, change := range changes {
			change(u)
		}
		return u
	}
	make("resourceslices", slice("here", nil))
	renew := func(spec map[string]any) *unstructured.Unstructured {
		spec["consumerClusterID"] = "rome"
		return replicated(liqoObject("Renew", consumerNamespace, "new", spec))
	}
	label := func(name, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			labels := u.GetLabels()
			labels[name] = value
			u.SetLabels(labels)
		}
	}
	noRequest := func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "spec", "csr") }
	amount := func(of string) map[string]any { return map[string]any{"resources": map[string]any{"cpu": of}} }
	many, long := map[string]any{}, strings.Repeat("a", 100)
	for n := range 17 {
		many[fmt.Sprintf("example.com/r%d", n)] = "1"
	}
	h := c.identity(t, "rome", "liqo.io")
	create := func(u *unstructured.Unstructured) func(context.Context) error {
		kind := sliceKind
		if u.GetKind() == "Renew" {
			kind = renewKind
		}
		return h.createLiqo(kind, consumerNamespace, u)
	}
	patch := func(change string, of ...string) func(context.Context) error {
		return h.patch(sliceKind, consumerNamespace, "here", change, of...)
	}
	const whose, kept, number = "has its id in consumerClusterID", "keeps its labels, owners and finalizers",
		"an amount of a slice"
	attempts := []attempt{
		{"grant itself", "the status of a slice", patch(
			`{"status": {"resources": {"cpu": "1k"}, "conditions": [{"type": "Resources", "status": "Accepted"}]}}`, "status")},
		{"slice", "", create(slice("new", nil))},
		{"slice without a request yet", "", create(slice("new", nil, noRequest))},
		{"slice without an id yet", "", create(slice("new", nil, func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "spec", "consumerClusterID")
		}))},
		{"slice without an id any longer", whose, patch(`{"spec": {"consumerClusterID": null}}`)},
		{"slice with a long name", "", create(slice(long, nil))},
		{"another size", "", patch(`{"spec": {"resources": {"cpu": "2"}}}`)},
		{"slice of another consumer", whose, create(slice("new", map[string]any{"consumerClusterID": "turin"}))},
		{"origin of another consumer", whose, create(slice("new", nil, label(originID, "turin")))},
		{"unchecked by Liqo", "liqo.io/webhook-skip", create(slice("new", nil, label(webhookSkip, "true")))},
		{"give a slice to another consumer", whose, patch(`{"spec": {"consumerClusterID": "turin"}}`)},
		{"take the origin off", whose, patch(`{"metadata": {"labels": {"liqo.io/originID": null}}}`)},
		{"another label", kept, patch(`{"metadata": {"labels": {"liqo-autoscaler.io/hub": "other"}}}`)},
		{"finalizer", kept, patch(`{"metadata": {"finalizers": ["mine.example/keep"]}}`)},
		{"slice with an owner", kept, create(slice("new", nil, func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}})
		}))},
		{"exponent", number, create(slice("new", amount("1e9")))},
		{"negative", number, create(slice("new", amount("-1")))},
		{"endless number", number, create(slice("new", amount(strings.Repeat("1", 17))))},
		{"many resources", "16 resources", create(slice("new", map[string]any{"resources": many}))},
		{"very long name", "at most 100 characters", create(slice(long+"a", nil, noRequest))},
		{"large annotation", "4,096 characters", create(slice("new", nil, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"a": strings.Repeat("a", 4097)})
		}))},
		{"certificate of two organizations", oneOrganization, create(slice("new", map[string]any{
			"csr": key.request(t, sliceName("new"), "rome", "a")}))},
		{"certificate of two organizations, long name", oneOrganization, create(slice(long, map[string]any{
			"csr": key.request(t, sliceName(long), "rome", "a")}))},
		{"Renew", "", create(renew(map[string]any{"identityType": "ControlPlane", "csr": own}))},
		{"Renew of another name", "repeats the certificate request", create(renew(map[string]any{
			"identityType": "ControlPlane", "csr": key.request(t, "mine", "liqo.io")}))},
		{"Renew of another consumer", whose, create(replicated(liqoObject("Renew", consumerNamespace, "new", map[string]any{
			"identityType": "ControlPlane", "csr": own, "consumerClusterID": "turin"})))},
		{"Renew of a slice", "certificates of slices are not renewed", create(renew(map[string]any{
			"identityType": "ResourceSlice", "resourceSliceRef": map[string]any{"name": "here"},
			"csr": key.request(t, sliceName("here"), "rome")}))},
		{"Renew that checks whether the provider answers", "", create(renew(map[string]any{"identityType": "ControlPlane"}))},
	}
	for size := 1; size <= 100; size += 11 {
		name := strings.Repeat("a", size)
		attempts = append(attempts, attempt{fmt.Sprintf("slice with %d characters", size), "", create(slice(name, nil))},
			attempt{fmt.Sprintf("two organizations with %d characters", size), oneOrganization, create(slice(name,
				map[string]any{"csr": key.request(t, sliceName(name), "rome", "a")}))})
	}
	for who, is := range consumerIdentities(t, c) {
		attempts = append(attempts, attempt{who + ": grant itself", "the status of a slice", is.patch(sliceKind,
			consumerNamespace, "here", `{"status": {"resources": {"cpu": "1k"}}}`, "status")})
	}
	c.judge(t, attempts)
	patched := fmt.Sprintf(`{"spec": {"publicKey": %q}}`, foreign.public(t))
	_, err = admin.Resource(tenants).Namespace(consumerNamespace).Patch(ctx, "rome", "application/merge-patch+json",
		[]byte(patched), metav1.PatchOptions{})
	require.NoError(t, err)
	c.judge(t, []attempt{{"key of another kind", oneOrganization, create(slice("new", nil))}})
}
