package providers

import (
	"context"
	"fmt"
	neturl "net/url"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
)

// tokenLasts is the default lifetime of a new token. An API server may issue tokens with a shorter lifetime.
const tokenLasts = 90 * 24 * time.Hour

// RegisterDuration adds the flag --duration.
func RegisterDuration(cmd *cobra.Command, lasts *time.Duration) {
	cmd.Flags().DurationVar(lasts, "duration", tokenLasts,
		"lifetime of the new token, at least 10m; the API server may grant less")
}

func newProviderKubeconfig() *cobra.Command {
	var f consumerFlags
	var kubeconfig, server string
	var lasts time.Duration
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig of the account that a consumer has on a provider",
		Long: `Print a kubeconfig of the account that a consumer has on a provider: the credentials of an offer. Its token expires;
provider-access renew replaces it while it is valid. Run this command as the provider's administrator.`,
		Example: "  liqo-autoscaler provider-access kubeconfig --consumer-id munich " +
			"--server https://milan.example.com:6443 > milan.kubeconfig",
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if at, err := neturl.Parse(server); err != nil || at.Scheme != "https" || at.Host == "" {
				return errNoServer
			}
			return nil
		},
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			admin, err := administrator(kubeconfig)
			if err != nil {
				return err
			}
			text, end, err := accountKubeconfig(ctx, admin, f.id, server, lasts)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "its token expires on %s: renew it before with liqo-autoscaler provider-access "+
				"renew\n",
				end.UTC().Format(time.RFC3339))
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}),
	}
	f.register(cmd)
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "access to the provider's cluster (default: as kubectl finds it)")
	cmd.Flags().StringVar(&server, "server", "",
		"address at which the consumer reaches the provider's API server; required")
	RegisterDuration(cmd, &lasts)
	return cmd
}

// administrator returns the configuration with which kubectl would connect to the cluster.
func administrator(kubeconfig string) (*rest.Config, error) {
	return serve.AsKubectl(kubeconfig, "find a kubeconfig")
}

// accountKubeconfig requests a token for the consumer's account, and returns a kubeconfig with this token.
func accountKubeconfig(ctx context.Context, admin *rest.Config, consumer, server string,
	lasts time.Duration) (text []byte, end time.Time, err error) {
	kube, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, end, err
	}
	token, end, err := newToken(ctx, kube, provider.Namespace, provider.Account(consumer), lasts)
	if err != nil {
		return nil, end, err
	}
	authority, err := Authority(ctx, kube, admin)
	if err != nil {
		return nil, end, err
	}
	text, err = Kubeconfig(server, authority, consumer, token)
	return text, end, err
}

// Token requests a token of the account that a consumer has on a provider.
func Token(ctx context.Context, kube kubernetes.Interface, consumer string, lasts time.Duration) (token string,
	end time.Time, err error) {
	return newToken(ctx, kube, provider.Namespace, provider.Account(consumer), lasts)
}

// Kubeconfig returns a kubeconfig for the account that a consumer has on a provider. An offer contains it as its
// credentials.
func Kubeconfig(server string, authority []byte, consumer, token string) ([]byte, error) {
	account := provider.Account(consumer)
	return clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "provider",
		Contexts:       map[string]*clientcmdapi.Context{"provider": {Cluster: "provider", AuthInfo: account}},
		Clusters: map[string]*clientcmdapi.Cluster{
			"provider": {Server: server, CertificateAuthorityData: authority},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{account: {Token: token}},
	})
}

// newToken requests a token for an account from the API server.
func newToken(ctx context.Context, kube kubernetes.Interface, namespace, account string,
	lasts time.Duration) (token string, end time.Time, err error) {
	made, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(lasts.Seconds()))}}, metav1.CreateOptions{})
	if err != nil {
		return "", end, fmt.Errorf("request a token of ServiceAccount %s/%s: %w", namespace, account, err)
	}
	return made.Status.Token, made.Status.ExpirationTimestamp.Time, nil
}

// Authority returns the certificate authorities of a cluster's API server. These are the authorities that Kubernetes
// gives to pods or, if it gives none, the authorities in the administrator's kubeconfig.
func Authority(ctx context.Context, kube kubernetes.Interface, admin *rest.Config) ([]byte, error) {
	for _, namespace := range []string{provider.Namespace, metav1.NamespaceSystem} {
		known, err := kube.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if err == nil && known.Data["ca.crt"] != "" {
			return []byte(known.Data["ca.crt"]), nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the cluster's certificate authority: %w", err)
		}
	}
	admin = rest.CopyConfig(admin)
	if err := rest.LoadTLSFiles(admin); err != nil {
		return nil, fmt.Errorf("read the kubeconfig's certificate authority: %w", err)
	}
	return admin.CAData, nil
}
