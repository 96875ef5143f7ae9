package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/offerserver"
)

const handOffer = `name: milan
credentials: {secretRef: {namespace: liqo-autoscaler, name: milan}}
lendable: {cpu: "16", memory: 64Gi, pods: "110"}
ttlSeconds: 3600
`

// run runs the command line, and returns its output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newRoot()
	var out testkit.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// An operator checks, publishes and deletes an offer with commands. An invalid offer is not sent to the server.
func TestOfferIsPublishedByHand(t *testing.T) {
	dir := t.TempDir()
	there := offerserver.New(t)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good, bad := file("milan.yaml", handOffer), file("bad.yaml", handOffer+"price: -1\nadmin: true\n")
	server := []string{"--discovery-url", there.URL, "--discovery-ca", there.CAFile, "--discovery-token-file",
		there.TokenFile}
	for _, c := range []struct {
		args       []string
		says, fail string
	}{
		{append([]string{"offers", "put", good}, server...), "offer milan is published for ", ""},
		{append([]string{"offers", "put", bad}, server...), "", "price: "},
		{append([]string{"offers", "delete", "milan"}, server...), "offer milan is deleted", ""},
		{append([]string{"offers", "delete", "milan"}, server...), "offer milan is deleted", ""},
		{[]string{"offers", "put", good, "--discovery-url", there.URL}, "", "--discovery-cert"},
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
