package liqo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
)

// If LAB_ACCOUNTS is set, backends use the accounts that the chart and the command provider-access make, and have no
// further permissions. The suite makes its own changes as an administrator.

const (
	ownNamespace  = "liqo-autoscaler"
	workerAccount = "liqo-autoscaler-worker"
)

// accounts makes the accounts of the chart and of provider-access once in a lab. It writes their credentials into the
// kubeconfigs that backends use (cluster.account).
func (l *lab) accounts(t *testing.T) {
	t.Helper()
	l.rights = &liqo.TenantRights{Role: workerAccount + "-tenant", Namespace: ownNamespace, Account: workerAccount}
	dir := filepath.Join(l.root, "accounts")
	_, err := os.Stat(dir)
	made := err == nil
	require.True(t, made || errors.Is(err, fs.ErrNotExist))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for _, c := range l.clusters {
		account := workerAccount
		c.account = filepath.Join(dir, c.name+".kubeconfig")
		if c.name != consumer {
			account, c.grant = provider.Account(consumer), l.grant
		}
		if made {
			continue
		}
		if c.grant != nil {
			require.NoError(t, c.apply(t.Context(), l.bin, []byte(provider.Manifest(consumer, "liqo", provider.PodPolicies))))
		} else {
			require.NoError(t, c.apply(t.Context(), l.bin, l.chart(t)))
		}
		hours := int64((2 * time.Hour).Seconds())
		token, err := c.kube.CoreV1().ServiceAccounts(ownNamespace).CreateToken(t.Context(), account,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}},
			metav1.CreateOptions{})
		require.NoError(t, err)
		config, err := clientcmd.LoadFromFile(c.kubeconfig)
		require.NoError(t, err)
		for user := range config.AuthInfos {
			config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
		}
		require.NoError(t, clientcmd.WriteToFile(*config, c.account))
		require.NoError(t, c.granted(t.Context()))
	}
}

// chart renders the chart's objects for a worker that may read the Secret default/provider1.
func (l *lab) chart(t *testing.T) []byte {
	t.Helper()
	chart := filepath.Join("..", "..", "..", "deploy", "helm", "liqo-autoscaler")
	out, err := exec.CommandContext(t.Context(), filepath.Join(l.bin, "helm"), "template", "liqo-autoscaler", chart,
		"--namespace", ownNamespace, "--kube-version", os.Getenv("LIQO_AUTOSCALER_LAB_KUBERNETES"), "--values",
		filepath.Join(chart, "ci", "plaintext-values.yaml"), "--set",
		"offers[0].name=first,offers[0].lendable.cpu=1,offers[0].credentials.secretRef.namespace=default,"+
			"offers[0].credentials.secretRef.name=provider1",
		"--show-only", "templates/serviceaccounts.yaml", "--show-only", "templates/worker-rbac.yaml",
		"--show-only", "templates/worker-policy.yaml").Output()
	require.NoError(t, err)
	return append([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ownNamespace+"}\n---\n"), out...)
}

// grant restores our access to the provider after a test has removed our namespace there.
func (l *lab) grant(ctx context.Context, c *cluster) error {
	manifest := []byte(provider.Manifest(consumer, "liqo", provider.PodPolicies))
	return errors.Join(c.apply(ctx, l.bin, manifest), c.granted(ctx))
}

func (c *cluster) apply(ctx context.Context, bin string, manifest []byte) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), "--kubeconfig", c.kubeconfig, "apply", "-f", "-")
	cmd.Stdin = bytes.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply on %s: %w: %s", c.name, err, out)
	}
	return nil
}

// granted waits until the account's permissions are in effect, because the authorizer reads new roles after a delay.
func (c *cluster) granted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", c.account)
	if err != nil {
		return err
	}
	account, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace := "" // the worker's permissions are in every namespace
	if strings.HasPrefix(c.name, "provider") {
		namespace = "liqo-tenant-" + consumer
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := account.Resource(authentication("tenants")).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
}
