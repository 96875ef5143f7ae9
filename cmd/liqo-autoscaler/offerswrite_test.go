package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const handOffer = `name: milan
credentials: {secretRef: {namespace: liqo-autoscaler, name: milan}}
lendable: {cpu: "16", memory: 64Gi, pods: "110"}
ttlSeconds: 3600
`

// run runs the command line, and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newRoot()
	var out testkit.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// An offer is checked, published, and deleted by hand; a faulty one is not sent.
func TestOffersByHand(t *testing.T) {
	dir := t.TempDir()
	d, _ := discoverySiteAt(t, dir)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good, bad := file("milan.yaml", handOffer), file("bad.yaml", handOffer+"price: -1\nadmin: true\n")
	server := []string{"--discovery-url", d.client.URL, "--discovery-ca", d.client.CAFile, "--discovery-token-file",
		d.client.TokenFile}
	for _, c := range []struct {
		args       []string
		says, fail string
	}{
		{append([]string{"offers", "put", good}, server...), "offer milan is published for ", ""},
		{append([]string{"offers", "put", bad}, server...), "", "price: "},
		{append([]string{"offers", "delete", "milan"}, server...), "offer milan is deleted", ""},
		{append([]string{"offers", "delete", "milan"}, server...), "offer milan is deleted", ""},
		{[]string{"offers", "put", good, "--discovery-url", d.client.URL}, "", "--discovery-cert"},
		{[]string{"offers", "validate", "--posted", good}, "ok: offer milan", ""},
		{[]string{"offers", "validate", "--posted", bad}, "", "admin: unknown field"},
		{[]string{"offers", "validate", "../../deploy/examples/offers.yaml"}, "ok: ", ""},
		{[]string{"offers", "validate", bad}, "", "unknown field"},
		{[]string{"writers", "validate", "../../deploy/examples/writers.yaml"}, "ok: ", ""},
		{[]string{"writers", "validate", bad}, "", "unknown field"},
	} {
		out, err := run(t, c.args...)
		if c.fail != "" {
			require.ErrorContains(t, err, c.fail, c.args)
			continue
		}
		require.NoError(t, err, c.args)
		require.Contains(t, out, c.says)
	}
}

// The Secret of an offer is made once, changed by who made it, and checked first; nothing of the kubeconfig is told.
func TestOffersAdd(t *testing.T) {
	kube := fake.NewClientset()
	access := []byte("clusters: [{name: c, cluster: {server: 'https://s3cret'}}]")
	data := map[string][]byte{"kubeconfig": access, "info": []byte("resources: {cpu: 1, memory: 1Gi, pods: 10}")}
	for range 2 {
		require.NoError(t, addOffer(t.Context(), kube, "lend", "milan", data))
	}
	secret, err := kube.CoreV1().Secrets("lend").Get(t.Context(), "milan", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, data, secret.Data)
	require.Equal(t, map[string]string{"autoscaling": "true"}, secret.Labels)

	require.NoError(t, addOffer(t.Context(), kube, "lend", "turin", map[string][]byte{"kubeconfig": access}))
	secret, err = kube.CoreV1().Secrets("lend").Get(t.Context(), "turin", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, secret.Labels, "credentials alone are no offer")

	for says, wrong := range map[string]map[string][]byte{
		"kubeconfig: is missing": {},
		"names no cluster":       {"kubeconfig": []byte("apiVersion: v1")},
		"info.resources":         {"kubeconfig": access, "info": []byte("resources: {cpu: -1, memory: 1Gi, pods: 10}")},
	} {
		err := addOffer(t.Context(), kube, "lend", "rome", wrong)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
