package liqo

import (
	"cmp"
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

const defaultKey = "kubeconfig"

// openCredentials reads the kubeconfig again for each client, so that a rotated kubeconfig is used immediately. Its
// errors do not contain the parser's text, which might quote the file.
func (b *Backend) openCredentials(ctx context.Context, credentials fleet.Credentials) (client.Client, error) {
	var config *rest.Config
	var err error
	switch {
	case credentials.KubeconfigFile != "" && credentials.SecretRef == nil:
		config, err = fileConfig(credentials.KubeconfigFile)
	case credentials.KubeconfigFile == "" && credentials.SecretRef != nil:
		config, err = b.secretConfig(ctx, *credentials.SecretRef)
	default:
		return nil, errorf(backend.ErrInvalid, "credentials need exactly one of kubeconfigFile and secretRef")
	}
	if err != nil {
		return nil, err
	}
	if why := account.Unverified(config); why != "" {
		return nil, errorf(backend.ErrInvalid, "the provider's kubeconfig %s", why)
	}
	provider, err := newProviderClient(config)
	if err != nil {
		return nil, errorf(backend.ErrInvalid,
			"the provider's kubeconfig cannot be used: its certificate, key or address is malformed")
	}
	return pinned{provider, authoritiesOf(config), account.LifeOf(config)}, nil
}

func fileConfig(path string) (*rest.Config, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, errorf(backend.ErrInvalid, "kubeconfig file: %v", err)
	}
	// This code does not use clientcmd.BuildConfigFromFlags: in a pod, that function treats an empty file as a request
	// to use the pod's own account.
	loaded, err := clientcmd.LoadFromFile(path)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(loaded)
	}
	if err != nil {
		return nil, errorf(backend.ErrInvalid, "kubeconfig file %s cannot be read as a kubeconfig", path)
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errorf(backend.ErrInvalid, "kubeconfig file %s cannot be read as a kubeconfig with a current context",
			path)
	}
	// fileConfig reads the named files itself. client-go would watch certificate files, with goroutines that never end
	// and with connections that outlive a rotation by minutes.
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, errorf(backend.ErrInvalid, "kubeconfig file %s: %v", path, err)
	}
	return config, nil
}

func (b *Backend) secretConfig(ctx context.Context, ref fleet.SecretRef) (*rest.Config, error) {
	key := cmp.Or(ref.Key, defaultKey)
	var secret corev1.Secret
	err := b.local.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || len(secret.Data[key]) == 0 {
		return nil, errorf(backend.ErrInvalid, "there is no Secret %s/%s with a key %s", ref.Namespace, ref.Name, key)
	}
	config, err := inlineConfig(secret.Data[key])
	if err != nil {
		return nil, errorf(backend.ErrInvalid, "key %s of Secret %s/%s %v", key, ref.Namespace, ref.Name, err)
	}
	return config, nil
}

// inlineConfig reads a kubeconfig from a Secret. The kubeconfig must not name programs or files, and its expanded
// size is bounded. Otherwise a user with permission to write the Secret could control the worker.
func inlineConfig(kubeconfig []byte) (*rest.Config, error) {
	if strictyaml.CheckAliases(kubeconfig) != nil {
		return nil, errAliases
	}
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errNotKubeconfig
	}
	for _, user := range parsed.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return nil, errRunsPrograms
		}
		if user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
			return nil, errNamesFiles
		}
	}
	for _, cluster := range parsed.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, errNamesFiles
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errNotKubeconfig
	}
	return config, nil
}
