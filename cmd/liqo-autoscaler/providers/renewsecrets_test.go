package providers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// tokenOfAge returns a token that has this age. It is valid for one hour from its issue.
func tokenOfAge(age time.Duration) string {
	begin := time.Now().Add(-age)
	claims := fmt.Sprintf(`{"sub": "system:serviceaccount:accounts:consumer-rome", "iat": %d, "exp": %d}`, begin.Unix(),
		begin.Add(time.Hour).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".b2xk"
}

// kubeconfigOf returns a kubeconfig for the provider's API server.
func kubeconfigOf(api *httptest.Server, user string) []byte {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: p, user: u}}]
clusters: [{name: p, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: %s}]
`, api.URL, base64.StdEncoding.EncodeToString(authority), user)
}

// providerAPI starts the API server of a provider. It answers each request with a new token. If the parameter instead
// is set, this handler answers the requests.
func providerAPI(t *testing.T, instead http.HandlerFunc) *httptest.Server {
	t.Helper()
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if instead != nil {
			instead(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
			Status: authenticationv1.TokenRequestStatus{Token: "new",
				ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))}})
	}))
	t.Cleanup(api.Close)
	return api
}

// TestDueTokensAreRenewed runs the CronJob's command once. The command renews the tokens that are due, and prints a
// reason for each Secret that it skips. If a renewal fails, the command continues and returns an error at the end. In
// a Secret, only the kubeconfig changes.
func TestDueTokensAreRenewed(t *testing.T) {
	good := providerAPI(t, nil)
	refusing := providerAPI(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
			"message": "no"}`)
	})
	endless := providerAPI(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(strings.Repeat(" ", 1<<16)))
		}
	})
	elsewhere := providerAPI(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", good.URL+"/api/v1/namespaces/accounts/serviceaccounts/consumer-rome/token")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	old := "{token: " + tokenOfAge(30*time.Minute) + "}"
	secret := func(name string, kubeconfig []byte, changes ...func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "offers", Name: name, ResourceVersion: "7",
			Labels: map[string]string{"autoscaling": "true"}},
			Data: map[string][]byte{"kubeconfig": kubeconfig, "info": []byte("price: 1")}}
		for _, change := range changes {
			change(s)
		}
		return s
	}
	yes := true
	kube := fake.NewClientset(
		secret("due", kubeconfigOf(good, old)),
		secret("named", kubeconfigOf(good, old), func(s *corev1.Secret) { s.Labels = nil }),
		secret("marked", kubeconfigOf(good, old), func(s *corev1.Secret) {
			s.Labels = map[string]string{labelRenew: "true"}
		}),
		secret("unmarked", kubeconfigOf(good, old), func(s *corev1.Secret) { s.Labels = nil }),
		secret("young", kubeconfigOf(good, "{token: "+tokenOfAge(10*time.Minute)+"}")),
		secret("never", kubeconfigOf(good, old), func(s *corev1.Secret) { s.Labels[labelRenew] = "false" }),
		secret("owned", kubeconfigOf(good, old), func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{Kind: "SealedSecret", Name: "x"}}
		}),
		secret("tracked", kubeconfigOf(good, old), func(s *corev1.Secret) {
			s.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "x"}
		}),
		secret("fixed", kubeconfigOf(good, old), func(s *corev1.Secret) { s.Immutable = &yes }),
		secret("certificate", kubeconfigOf(good, "{client-certificate-data: eA==, client-key-data: eA==}")),
		secret("refused", kubeconfigOf(refusing, old)),
		secret("endless", kubeconfigOf(endless, old)),
		secret("elsewhere", kubeconfigOf(elsewhere, old)),
		secret("broken", []byte("s3cret")),
		secret("insecure", regexp.MustCompile(`certificate-authority-data: [^}]+`).ReplaceAll(kubeconfigOf(good, old),
			[]byte("insecure-skip-tls-verify: true"))),
		secret("plain", bytes.Replace(kubeconfigOf(good, old), []byte("https://"), []byte("http://"), 1)),
	)
	r := renewals{secrets: []string{"offers/named", "offers/due/kubeconfig"}, namespaces: []string{"offers"},
		key: credentialsKey, due: true, lasts: time.Hour}
	var out strings.Builder
	err := r.renewAll(t.Context(), kube, &out)
	for _, failed := range []string{"refused", "endless", "elsewhere", "broken", "insecure", "plain"} {
		require.ErrorContains(t, err, "key kubeconfig of Secret offers/"+failed+": ")
	}
	require.Equal(t, 6, strings.Count(err.Error(), "key kubeconfig of Secret"))
	require.ErrorContains(t, err, "offers/insecure: the kubeconfig has insecure-skip-tls-verify")
	require.ErrorContains(t, err, "offers/plain: the kubeconfig has a server that is not https://")
	require.NotContains(t, err.Error()+out.String(), "s3cret")
	require.NotContains(t, err.Error()+out.String(), "e30.")
	for name, says := range map[string]string{
		"due": " has a token that is valid until ", "named": " has a token that is valid until ",
		"marked": " has a token that is valid until ",
		"young":  " is not due before ", "never": " is skipped: its label liqo-autoscaler.io/renew is false\n",
		"owned": " is skipped: SealedSecret x writes it from another source, and would undo the change: renew the token in " +
			"that source\n",
		"tracked": " is skipped: Argo CD writes it from another source", "fixed": " is skipped: it is immutable\n",
		"certificate": " is skipped: the kubeconfig has no token",
	} {
		require.Contains(t, out.String(), "offers/"+name+says)
		renewed := strings.Contains(says, "has a token")
		now, err := kube.CoreV1().Secrets("offers").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, renewed, strings.Contains(string(now.Data["kubeconfig"]), "token: new"), name)
		require.Equal(t, "price: 1", string(now.Data["info"]))
	}
	require.Equal(t, 9, strings.Count(out.String(), "\n"), "%s", out.String())

	r = renewals{secrets: []string{"offers/certificate"}, key: credentialsKey, lasts: time.Hour}
	require.ErrorContains(t, r.renewAll(t.Context(), kube, &out), "the kubeconfig has no token", "by hand")
}
