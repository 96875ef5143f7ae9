package liqo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: s3cret}}]
`

func TestCredentialsAreReadFromASecret(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{ObjectMeta: named("hub", "provider1"),
		Data: map[string][]byte{"kubeconfig": []byte(kubeconfig), "other": []byte("s3cret")}}
	c := newClusters(t, []client.Object{secret}, nil)
	ref := func(key string) fleet.Credentials {
		return fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "hub", Name: "provider1", Key: key}}
	}
	_, err := c.openCredentials(t.Context(), ref(""))
	require.NoError(t, err)
	for _, key := range []string{"other", "missing"} {
		_, err = c.openCredentials(t.Context(), ref(key))
		require.ErrorIs(t, err, backend.ErrInvalid)
		require.ErrorContains(t, err, "hub/provider1")
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// A user with permission to write a Secret must not be able to run programs or read files on the worker.
func TestCredentialsInASecretRunNoProgram(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]string{
		"exec":      `{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}}`,
		"provider":  `{auth-provider: {name: gcp}}`,
		"token":     `{tokenFile: /etc/passwd}`,
		"key":       `{client-certificate: /a, client-key: /b}`,
		"authority": `{token: x}`,
	} {
		t.Run(name, func(t *testing.T) {
			config := strings.Replace(kubeconfig, "{token: s3cret}", user, 1)
			if name == "authority" {
				config = strings.Replace(config, "server:", "certificate-authority: /etc/passwd, server:", 1)
			}
			_, err := inlineConfig([]byte(config))
			require.Error(t, err)
			require.NotErrorIs(t, err, errNotKubeconfig)
		})
	}
}

// Credentials that do not verify the identity of the server are refused.
func TestCredentialsMustVerifyTheServer(t *testing.T) {
	t.Parallel()
	for says, replace := range map[string][2]string{
		"insecure-skip-tls-verify": {"server:", "insecure-skip-tls-verify: true, server:"},
		"not https://":             {"https:", "http:"},
	} {
		config := strings.Replace(kubeconfig, replace[0], replace[1], 1)
		path := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
		c := newClusters(t, []client.Object{&corev1.Secret{ObjectMeta: named("hub", "provider1"),
			Data: map[string][]byte{"kubeconfig": []byte(config)}}}, nil)
		for _, credentials := range []fleet.Credentials{
			{KubeconfigFile: path}, {SecretRef: &fleet.SecretRef{Namespace: "hub", Name: "provider1"}},
		} {
			_, err := c.openCredentials(t.Context(), credentials)
			require.ErrorIs(t, err, backend.ErrInvalid)
			require.ErrorContains(t, err, says)
		}
	}
}

func TestCredentialsFileIsReadAgain(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	credentials := fleet.Credentials{KubeconfigFile: path}
	_, err := c.openCredentials(t.Context(), credentials)
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // an empty file, as during a rotation
	_, err = c.openCredentials(t.Context(), credentials)
	require.ErrorIs(t, err, backend.ErrInvalid, "an empty one is not the account of the pod this runs in")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	_, err = c.openCredentials(t.Context(), credentials)
	require.NoError(t, err)

	_, err = c.openCredentials(t.Context(), fleet.Credentials{KubeconfigFile: path, SecretRef: &fleet.SecretRef{}})
	require.ErrorIs(t, err, backend.ErrInvalid, "exactly one")
}

// A kubeconfig file names a program that returns a token, and the program hangs. A call of the backend returns when
// its context ends, and does not wait for the program.
func TestHangingCredentialsProgramDoesNotBlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	config := strings.Replace(kubeconfig, "{token: s3cret}",
		`{exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, args: ["`+pipe+`"], interactiveMode: Never}}`, 1)
	path := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	c := newClusters(t, nil, nil)
	c.open = c.openCredentials
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { _, err := c.Identify(ctx, fleet.Credentials{KubeconfigFile: path}); done <- err }()
	select {
	case err := <-done:
		require.ErrorIs(t, err, backend.ErrUnreachable)
	case <-time.After(time.Minute):
		require.FailNow(t, "it waits for the program")
	}
	ends, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, ends.Close())
}

// YAML aliases in a Secret must not exhaust the worker's memory.
func TestCredentialsWithYAMLAliasesAreRefused(t *testing.T) {
	t.Parallel()
	swollen := kubeconfig + "extra: &a " + strings.Repeat("x", 100_000) + "\nmore: [" + strings.Repeat("*a,", 2_000) +
		"]\n"
	_, err := inlineConfig([]byte(swollen))
	require.ErrorIs(t, err, errAliases)
}
