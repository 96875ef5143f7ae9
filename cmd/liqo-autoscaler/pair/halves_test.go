package pair

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
)

func (p *place) version(v string) {
	p.kube.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: v}
}

// The two clusters have different owners, so each owner runs one half of the setup. The document carries the token
// from the provider's half to the consumer's half. No other output contains the token.
func TestDocumentCarriesTheTokenBetweenOwners(t *testing.T) {
	w := newWorld(t)
	path := w.path("milan.yaml")
	out, report, err := w.split("provider", "--context", "milan", "--consumer-id", "munich", "--output", path, "--price",
		"0.1")
	require.NoError(t, err)
	require.Empty(t, out)
	require.Contains(t, report, "objects 29 created")
	about, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), about.Mode().Perm())
	require.Empty(t, w.places["munich"].writes(), "it does not know the consumer")

	_, _, err = w.split("provider", "--context", "milan", "--consumer-id", "munich", "--output", path)
	require.ErrorContains(t, err, "the file exists")
	require.Len(t, w.places["milan"].tokens, 1)

	w.places["milan"].writes()
	out, _, err = w.split("consumer", "--context", "munich", "--from", path)
	require.NoError(t, err)
	require.Contains(t, out, "Secret liqo-autoscaler/milan: created")
	require.Contains(t, string(w.secret("milan").Data["info"]), "price: 0.1")
	require.Contains(t, string(w.secret("milan").Data["kubeconfig"]), w.places["milan"].tokens[0])
	require.Empty(t, w.places["milan"].writes())
	out, _, err = w.split("consumer", "--context", "munich", "--from", path)
	require.NoError(t, err)
	require.Contains(t, out, "Secret liqo-autoscaler/milan: unchanged")
	w.tellsNoToken()
}

// If stdout is not a terminal, the command writes the document to stdout.
func TestDocumentIsWrittenToStdout(t *testing.T) {
	w := newWorld(t)
	out, _, err := w.split("provider", "--context", "milan", "--consumer-id", "munich")
	require.NoError(t, err)
	d, err := readDocument([]byte(out))
	require.NoError(t, err)
	require.Equal(t, w.places["milan"].tokens[0], d.Access.Token)
	w.tellsNoToken()

	_, report, err := w.split("provider", "--context", "milan", "--consumer-id", "munich", "--dry-run")
	require.NoError(t, err)
	require.Contains(t, report, "no token was requested")
	require.Len(t, w.places["milan"].tokens, 1)
}

// The command refuses an invalid document and a document for another consumer. No error quotes the document.
func TestInvalidDocumentIsRefused(t *testing.T) {
	w := newWorld(t)
	good, _, err := w.split("provider", "--context", "milan", "--consumer-id", "munich")
	require.NoError(t, err)
	change := func(old, with string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, with, 1)
	}
	renamed := strings.ReplaceAll(change("provider: milan", "provider: munich"), "id: milan", "id: munich")
	for says, text := range map[string]string{
		"is for consumer rome":                   change("consumer: munich", "consumer: rome"),
		"this is not a ProviderAccess":           "kind: Secret",
		"wrong fields (extra)":                   good + "extra: 1\n",
		"are the same cluster":                   change("uid: uid-milan", "uid: uid-munich"),
		"have the same Liqo cluster id":          renamed,
		"different minor versions":               change("liqo: 1.2.0", "liqo: 1.1.0"),
		"with --provider-server":                 change("https://milan.example.com:6443", "https://127.0.0.1:1"),
		"https://host:port":                      change("https://milan.example.com:6443", "http://milan"),
		"access.token is not a token":            change(w.places["milan"].tokens[0], "s3cret"),
		"access.certificateAuthority is not PEM": change(`certificateAuthority: ""`, "certificateAuthority: s3cret"),
		"more than 1 MiB":                        good + strings.Repeat("#", maxDocument),
		"wrong data:\ninfo.resources.cpu":        change("    cpu: \"8\"\n    ephemeral", "    cpu: \"-8\"\n    ephemeral"),
	} {
		require.NoError(t, os.WriteFile(w.path("d.yaml"), []byte(text), 0o600))
		_, _, err := w.split("consumer", "--context", "munich", "--from", w.path("d.yaml"))
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "s3cret")
		require.Empty(t, w.places["munich"].writes(), says)
	}
	_, _, err = w.split("provider", "--context", "milan", "--consumer-id", "milan")
	require.ErrorContains(t, err, "this is the id of the provider")
	w.tellsNoToken()
}

// `setup --undo` removes nothing while a node or the peering exists.
func TestUndoRemovesNothingInUse(t *testing.T) {
	for side, all := range relations {
		for _, r := range all {
			w := newWorld(t)
			_, err := w.run()
			require.NoError(t, err)
			at, other := w.places["munich"], "milan"
			if side == "provider" {
				at, other = w.places["milan"], "munich"
			}
			at.exists(t, r, "x1", other)
			for _, p := range w.places {
				p.writes()
			}
			_, err = w.run("--undo")
			require.ErrorContains(t, err, "it still has objects with "+other+": "+r.kind+" x1", side)
			for id, p := range w.places {
				require.Empty(t, p.writes(), id)
			}
			at.exists(t, r, "x2", "another") // an object for another cluster does not prevent the removal
		}
	}
}

// `setup --undo` removes, in both clusters, exactly the objects that setup has created.
func TestUndoRemovesItsOwnObjects(t *testing.T) {
	w := newWorld(t)
	_, err := w.run()
	require.NoError(t, err)
	w.makeSecret("other", map[string]string{"autoscaling": "true"})
	w.places["munich"].exists(t, relations["consumer"][0], "n7", "turin")
	for _, p := range w.places {
		p.writes()
	}
	out, err := w.run("--undo", "--dry-run")
	require.NoError(t, err)
	require.Contains(t, out, "28 objects would be removed")
	require.Contains(t, out, "Secret liqo-autoscaler/milan: would be removed")
	for id, p := range w.places {
		require.Empty(t, p.writes(), id)
	}
	out, err = w.run("--undo")
	require.NoError(t, err)
	require.Contains(t, out, "28 objects removed")
	require.Equal(t, []string{"delete secrets/"}, w.places["munich"].writes())
	removed := w.places["milan"].writes()
	require.Len(t, removed, 28)
	require.Equal(t, "delete serviceaccounts/", removed[0], "the tokens are void first")
	require.Equal(t, "delete namespaces/", removed[27])
	w.secret("other")

	out, err = w.run("--undo")
	require.NoError(t, err, "to run it twice is harmless")
	require.Contains(t, out, "0 objects removed")
}

func TestUndoOfOneHalf(t *testing.T) {
	w := newWorld(t)
	_, err := w.run()
	require.NoError(t, err)
	_, _, err = w.split("consumer", "--context", "munich", "--undo", "--provider-id", "milan")
	require.NoError(t, err)
	_, err = w.places["munich"].kube.CoreV1().Secrets("liqo-autoscaler").Get(t.Context(), "milan", metav1.GetOptions{})
	require.Error(t, err)
	_, report, err := w.split("provider", "--context", "milan", "--undo", "--consumer-id", "munich")
	require.NoError(t, err)
	require.Contains(t, report, "28 objects removed")
	_, _, err = w.split("consumer", "--context", "munich", "--undo")
	require.ErrorContains(t, err, "--undo needs --provider-id")
}
