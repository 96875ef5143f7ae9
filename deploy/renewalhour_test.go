package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// renewalEnv is the environment variable with the duration of TestRenewalGoesOn.
const renewalEnv = "RENEWAL"

// TestRenewalGoesOn runs the CronJob's command each minute on tokens that are valid for ten minutes. The command has
// the account and the permissions that the chart gives it. The kubeconfig works all the time, although the provider
// refuses one renewal. A Secret that another program manages keeps its token until the token expires. Each run prints
// that it skips this Secret.
func TestRenewalGoesOn(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv(renewalEnv))
	if err != nil {
		t.Skip("takes an hour: make e2e SUITE=renewal")
	}
	c := startCluster(t) // the consumer and the provider at the same time
	binary := tool(t, "LIQO_AUTOSCALER")
	for _, name := range []string{namespace, "liqo"} {
		c.kubectl(t, nil, "create", "namespace", name)
	}
	raw, err := exec.CommandContext(t.Context(), binary, "provider-access", "--consumer-id", "rome",
		"--no-policy").Output()
	require.NoError(t, err)
	c.kubectl(t, raw, "apply", "--server-side", "-f", "-")
	manifest, err := template(t, "--values", valuesFile("plaintext"), "--show-only", "templates/renewal.yaml", "--set",
		"offerSecrets.enabled=true")
	require.NoError(t, err, "%s", manifest)
	c.kubectl(t, manifest, "apply", "--server-side", "-f", "-")

	cmd := exec.CommandContext(t.Context(), binary, "provider-access", "kubeconfig", "--consumer-id", "rome", "--server",
		c.config.Host, "--duration", "10m", "--kubeconfig", c.kubeconfig)
	kubeconfig, err := cmd.Output()
	require.NoError(t, err, "%s", kubeconfig)
	secrets := c.kube.CoreV1().Secrets(namespace)
	for name, owners := range map[string][]metav1.OwnerReference{"milan": nil, "other": {{
		APIVersion: "bitnami.com/v1alpha1", Kind: "SealedSecret", Name: "other",
		UID: "00000000-0000-0000-0000-000000000000"}}} {
		_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name,
			OwnerReferences: owners}, Data: map[string][]byte{"kubeconfig": kubeconfig}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	life := func(name string) account.Life {
		secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		access, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
		require.NoError(t, err)
		return account.LifeOf(access)
	}
	renew := func() (string, error) {
		return c.run(t, binary, nil, "provider-access", "renew", "--due", "--duration=10m", "--secret="+namespace+"/milan",
			"--secret="+namespace+"/other", "--kubeconfig", c.renewalKubeconfig(t))
	}
	other := life("other")
	refusedOnce, renewed, end := false, 0, life("milan").End
	began := time.Now()
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for time.Since(began) < lasts {
		refuse := !refusedOnce && time.Now().After(life("milan").Due())
		c.allowTokens(t, !refuse)
		out, err := renew()
		if refuse {
			require.ErrorContains(t, err, "exit status 1", "%s", out)
			require.Contains(t, out, "request a token of ServiceAccount liqo-autoscaler/consumer-rome")
			c.allowTokens(t, true)
			refusedOnce = true
		} else {
			require.NoError(t, err, "%s", out)
		}
		require.Contains(t, out, "liqo-autoscaler/other is skipped: SealedSecret other writes it from elsewhere")
		if now := life("milan").End; now.After(end) {
			renewed, end = renewed+1, now
		}
		secret, err := secrets.Get(t.Context(), "milan", metav1.GetOptions{})
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(file, secret.Data["kubeconfig"], 0o600))
		who := c.kubectl(t, nil, "--kubeconfig", file, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
		require.Equal(t, "system:serviceaccount:liqo-autoscaler:consumer-rome", who)
		require.True(t, time.Now().Before(life("milan").Late()), "no alert")
		t.Logf("after %s: renewed %d times, until %s; the other is late: %t", time.Since(began).Round(time.Second), renewed,
			end.UTC().Format(time.TimeOnly), time.Now().After(other.Late()))
		<-minute.C
	}
	require.True(t, refusedOnce)
	require.Equal(t, other, life("other"), "it was left alone")
	require.True(t, time.Now().After(other.End), "and has ended")
}

// allowTokens permits or forbids the account on the provider to request new tokens.
func (c *cluster) allowTokens(t *testing.T, allow bool) {
	t.Helper()
	const name = "liqo-autoscaler-consumer-rome"
	bindings := c.kube.RbacV1().RoleBindings(namespace)
	binding, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	binding.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "consumer-rome"}}
	if !allow {
		binding.Subjects[0].Name = "nobody"
	}
	_, err = bindings.Update(t.Context(), binding, metav1.UpdateOptions{})
	require.NoError(t, err)
	testkit.Until(t, time.Minute, "the authorizer knows", func() error {
		if may(t, c, "consumer-rome", namespace, "create", "/serviceaccounts/token", "consumer-rome") != allow {
			return errStillThere
		}
		return nil
	})
}

// renewalKubeconfig writes a kubeconfig for the account of the CronJob.
func (c *cluster) renewalKubeconfig(t *testing.T) string {
	t.Helper()
	made := c.kubectl(t, nil, "create", "token", "liqo-autoscaler-renewal", "-n", namespace)
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	require.NoError(t, err)
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(made)}
	}
	file := filepath.Join(t.TempDir(), "renewal")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}
