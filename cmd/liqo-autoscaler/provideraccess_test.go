package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// The standard output contains only YAML, which the user can pass to kubectl. The next steps and the warnings go to
// stderr.
func TestProviderAccessPrintsOnlyYAML(t *testing.T) {
	out, said, err := command(t.Context(), "provider-access", "--consumer-id", "rome")
	require.NoError(t, err)
	require.Contains(t, out, "name: liqo-tenant-rome")
	require.Contains(t, out, "kind: ValidatingAdmissionPolicy\n")
	require.NotContains(t, out, "munich")
	require.Contains(t, said, "provider-access kubeconfig --consumer-id rome --server")
	require.NotContains(t, said, "WARNING")
	require.Contains(t, out, "name: liqo-autoscaler-consumer-rome-pods\n")

	out, said, err = command(t.Context(), "provider-access", "--consumer-id", "rome", "--pod-security", "privileged")
	require.NoError(t, err)
	require.Contains(t, out, "name: liqo-autoscaler-consumer-rome-tenant\n")
	require.NotContains(t, out, "liqo-autoscaler-consumer-rome-pods")
	require.Contains(t, said, "WARNING: with --pod-security privileged the pods of consumer rome may take over the nodes")

	out, said, err = command(t.Context(), "provider-access", "--consumer-id", "rome", "--no-policy", "--liqo-namespace",
		"liqo-system")
	require.NoError(t, err)
	require.NotContains(t, out, "ValidatingAdmissionPolicy")
	require.Contains(t, out, "namespace: liqo-system\n")
	require.Contains(t, said, "WARNING: without the admission policies the account consumer-rome can make itself an "+
		"administrator")
}

func TestProviderAccessMisuse(t *testing.T) {
	long := strings.Repeat("x", 63-len("liqo-tenant-")+1)
	for says, args := range map[string][]string{
		`--consumer-id ""`:              {},
		`--consumer-id "Rome"`:          {"--consumer-id", "Rome"},
		`--consumer-id "` + long:        {"--consumer-id", long},
		`--liqo-namespace "a\nb"`:       {"--consumer-id", "rome", "--liqo-namespace", "a\nb"},
		"the namespace of the accounts": {"--consumer-id", "rome", "--liqo-namespace", "liqo-autoscaler"},
		`--pod-security "strict"`:       {"--consumer-id", "rome", "--pod-security", "strict"},
		"--server is missing":           {"kubeconfig", "--consumer-id", "rome", "--server", "milan:6443"},
		"give --file, or --secret and":  {"renew"},
		`--secret "milan"`:              {"renew", "--secret", "milan"},
		"no such file":                  {"renew", "--file", "/none"},
		"--due is for Secrets":          {"renew", "--file", "/none", "--due"},
		`--secret "a/b/c/d"`:            {"renew", "--secret", "a/b/c/d"},
		"unknown command \"renwe\"":     {"renwe"},
		"find a kubeconfig: stat /x": {"kubeconfig", "--consumer-id", "rome", "--server", "https://x", "--kubeconfig",
			"/x"},
	} {
		_, _, err := command(t.Context(), append([]string{"provider-access"}, args...)...)
		require.ErrorContains(t, err, says)
	}
}

// The command uses a token to request a new token for the same account, and replaces only the token in the file. A
// file whose token cannot be renewed stays unchanged. Errors quote no part of a file.
func TestRenewChangesOnlyTheToken(t *testing.T) {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub": "system:serviceaccount:accounts:consumer-rome"}`))
	old, end := "e30."+claims+".b2xk", time.Now().Add(time.Hour).Truncate(time.Second)
	var asked []string
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		var request authenticationv1.TokenRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &request)
		}
		if err != nil || *request.Spec.ExpirationSeconds != 1200 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		request.Status = authenticationv1.TokenRequestStatus{Token: "new", ExpirationTimestamp: metav1.NewTime(end)}
		request.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(request)
	}))
	defer api.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	text := func(user string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: p, user: u, namespace: kept}}]
clusters: [{name: p, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: %s}]
`, api.URL, base64.StdEncoding.EncodeToString(authority), user)
	}
	renew := func(user string) (string, error) {
		require.NoError(t, os.WriteFile(file, []byte(text(user)), 0o600))
		out, _, err := command(t.Context(), "provider-access", "renew", "--file", file, "--duration", "20m")
		return out, err
	}
	out, err := renew("{token: " + old + "}")
	require.NoError(t, err)
	require.Equal(t, file+" has a token that is valid until "+end.UTC().Format(time.RFC3339)+"\n", out)
	require.Equal(t, []string{"POST /api/v1/namespaces/accounts/serviceaccounts/consumer-rome/token Bearer " + old}, asked)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(written), "token: new")
	require.Contains(t, string(written), "namespace: kept")
	require.NotContains(t, string(written), old)

	for user, says := range map[string]string{
		"{token: s3cret}": "does not belong to a ServiceAccount",
		"{exec: {apiVersion: client.authentication.k8s.io/v1, command: s3cret, interactiveMode: Never}}": "has no token",
		"[s3cret]": "the kubeconfig has no current context",
	} {
		_, err := renew(user)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "s3cret")
		written, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, text(user), string(written))
	}
	require.Len(t, asked, 1)
}
