package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/offerserver"
)

func TestIncompleteSourcesAreRefused(t *testing.T) {
	server := client.Options{URL: "https://there", TokenFile: "token", SecretNamespaces: []string{"lend"}}
	for says, s := range map[string]Sources{
		"no source of offers":                 {},
		"need --discovery-url":                {Files: []string{"a"}, Server: client.Options{CAFile: "ca"}},
		"needs --discovery-token-file":        {Server: client.Options{URL: "https://there"}},
		"needs --discovery-secret-namespaces": {Server: client.Options{URL: "https://there", TokenFile: "token"}},
	} {
		require.ErrorContains(t, s.Check(), says)
		_, err := s.Open(bySecret{}, nil, "")
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, Sources{Files: []string{"a", "b"}, SecretsNamespace: "lend", Server: server}.Check())
	_, err := Sources{SecretsNamespace: "lend"}.Open(bySecret{}, nil, "")
	require.ErrorContains(t, err, "use --backend liqo")
	_, err = Sources{Files: []string{"missing.yaml"}}.Open(bySecret{}, nil, "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// bySecret is a backend that returns the name of the Secret as the id of the provider.
type bySecret struct{ backend.Backend }

func (bySecret) Peers(context.Context, string) ([]fleet.Provider, error) { return nil, nil }

func (bySecret) Identify(_ context.Context, c fleet.Credentials) (string, error) {
	return c.SecretRef.Name, nil
}

func offersFile(t *testing.T, name, offer, provider string) string {
	t.Helper()
	return offersText(t, name, `{name: %s, credentials: {secretRef: {namespace: lend, name: %s}}, lendable: {cpu: 8, `+
		`memory: 16Gi, pods: 110}}`, offer, provider)
}

// declaredOffer returns the path of a file whose offer contains the id of its provider.
func declaredOffer(t *testing.T, name, offer, provider string) string {
	t.Helper()
	return offersText(t, name, `{name: %s, provider: %[2]s, credentials: {secretRef: {namespace: lend, name: %[2]s}}, `+
		`lendable: {cpu: 8, memory: 16Gi, pods: 110}}`, offer, provider)
}

func offersText(t *testing.T, name, text string, values ...any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, fmt.Appendf([]byte("offers:\n- "), text+"\n", values...), 0o600))
	return path
}

// consumerWith returns the access to a fake consumer cluster with these Secrets in the namespace lend. The cluster's
// watches deliver no events.
func consumerWith(t *testing.T, secrets ...corev1.Secret) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/lend/secrets", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(corev1.SecretList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1",
				Kind: "SecretList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: secrets,
		})
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return &rest.Config{Host: web.URL}
}

// The offers of all sources are merged: two files, labelled Secrets, and the discovery server. If two sources have an
// offer of the same provider, the problem names both.
func TestSourcesAreMerged(t *testing.T) {
	there := offerserver.New(t)
	offerserver.PutSamples(t, there) // the samples have the offers milan, turin and genoa
	consumer := consumerWith(t, corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lend", Name: "venice", Labels: map[string]string{"autoscaling": "true"}},
		Data: map[string][]byte{
			"kubeconfig": []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: " +
				"'https://venice.example'}}]\n"),
			"info": []byte("resources: {cpu: 8, memory: 16Gi, pods: 110}"),
		},
	})
	s := Sources{
		Files:            []string{offersFile(t, "a.yaml", "rome", "rome"), declaredOffer(t, "b.yaml", "again", "milan")},
		SecretsNamespace: "lend", Server: there,
	}
	offers, err := s.Open(bySecret{}, consumer, "")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	watched := make(chan error, 1)
	go func() { watched <- offers.Watch(ctx) }()
	found, problems, err := offers.Offers(ctx)
	require.NoError(t, err)
	var providers []string
	for _, o := range found {
		providers = append(providers, o.Provider)
	}
	require.Equal(t, []string{"milan", "genoa", "rome", "turin", "venice"}, providers,
		"the file's milan serves: it is declared")
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].String(), "api: offer milan")
	require.Contains(t, problems[0].String(), "b.yaml/again")
	cancel()
	require.NoError(t, <-watched)
}

// One of several files is broken. The problem names this file.
func TestSourcesNameTheirFiles(t *testing.T) {
	a, b := offersFile(t, "a.yaml", "rome", "rome"), offersFile(t, "b.yaml", "milan", "milan")
	offers, err := Sources{Files: []string{a, b}}.Open(bySecret{}, nil, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b, []byte("offers: nonsense"), 0o600))
	found, problems, err := offers.Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 2, "the last good version serves")
	require.Len(t, problems, 1)
	require.Equal(t, "file "+b, problems[0].Source)
}
