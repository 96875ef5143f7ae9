package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// credentialsKey is where an offer's kubeconfig is in its Secret, if it names no other key.
const credentialsKey = "kubeconfig"

// renewal is a kubeconfig with a token that is to be replaced: a file, or a Secret of the consumer.
type renewal struct {
	file       string
	secret     string // namespace/name
	key        string
	kubeconfig string // access to the consumer, for a Secret
	lasts      time.Duration
}

func newProviderRenew() *cobra.Command {
	var r renewal
	cmd := &cobra.Command{
		Use:   "renew",
		Short: "Give a provider's kubeconfig a new token",
		Long: `Request a new token with a provider's kubeconfig, and write it back to the file or Secret that holds it; the worker uses
it at once. The old token stays valid until it expires. After that only the provider can issue another one, with
provider-access kubeconfig. Run this by hand or on a schedule.`,
		Example: "  liqo-autoscaler provider-access renew --secret liqo-autoscaler/milan\n" +
			"  liqo-autoscaler provider-access renew --file milan.kubeconfig --duration 720h",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return r.check() },
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			end, err := r.run(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s has a token until %s\n", r.file+r.secret, end.UTC().Format(time.RFC3339))
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.file, "file", "", "the provider's kubeconfig")
	f.StringVar(&r.secret, "secret", "",
		"NAMESPACE/NAME of the Secret with the provider's kubeconfig, in the consumer's cluster")
	f.StringVar(&r.key, "key", credentialsKey, "where the kubeconfig is in the Secret")
	f.StringVar(&r.kubeconfig, "kubeconfig", "",
		"access to the consumer's cluster, for --secret (default: as kubectl finds it)")
	registerDuration(cmd, &r.lasts)
	return cmd
}

// check refuses flags that do not name exactly one kubeconfig.
func (r renewal) check() error {
	if (r.file == "") == (r.secret == "") {
		return errors.New("give --file or --secret")
	}
	return nil
}

func (r renewal) run(ctx context.Context) (end time.Time, err error) {
	if r.file != "" {
		return r.inFile(ctx)
	}
	return r.inSecret(ctx)
}

// inFile replaces the whole file at once, so that nobody reads half of it.
func (r renewal) inFile(ctx context.Context) (end time.Time, err error) {
	text, err := os.ReadFile(r.file)
	if err != nil {
		return end, err
	}
	text, end, err = renewed(ctx, text, r.lasts)
	if err != nil {
		return end, fmt.Errorf("%s: %w", r.file, err)
	}
	beside := r.file + ".new"
	if err := os.WriteFile(beside, text, 0o600); err != nil {
		return end, err
	}
	return end, os.Rename(beside, r.file)
}

func (r renewal) inSecret(ctx context.Context) (end time.Time, err error) {
	namespace, name, both := strings.Cut(r.secret, "/")
	if !both {
		return end, fmt.Errorf("--secret %q: give NAMESPACE/NAME", r.secret)
	}
	access, err := administrator(r.kubeconfig)
	if err != nil {
		return end, err
	}
	kube, err := kubernetes.NewForConfig(access)
	if err != nil {
		return end, err
	}
	secret, err := kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return end, err
	}
	text, end, err := renewed(ctx, secret.Data[r.key], r.lasts)
	if err != nil {
		return end, fmt.Errorf("key %s of Secret %s: %w", r.key, r.secret, err)
	}
	secret.Data[r.key] = text
	_, err = kube.CoreV1().Secrets(namespace).Update(ctx, secret, metav1.UpdateOptions{})
	return end, err
}

// renewed is the kubeconfig with a new token of the same account. Errors do not quote the kubeconfig.
func renewed(ctx context.Context, text []byte, lasts time.Duration) (renewed []byte, end time.Time, err error) {
	parsed, err := clientcmd.Load(text)
	if err != nil || parsed.Contexts[parsed.CurrentContext] == nil {
		return nil, end, errors.New("there is no kubeconfig with a current context")
	}
	user := parsed.AuthInfos[parsed.Contexts[parsed.CurrentContext].AuthInfo]
	if user == nil || user.Token == "" {
		return nil, end, errors.New("the kubeconfig has no token: only that of a ServiceAccount is renewed")
	}
	namespace, name, err := account.Of(user.Token)
	if err != nil {
		return nil, end, err
	}
	// Nothing else of the user is used: who writes the Secret must not thereby run a program here.
	bare := parsed.DeepCopy()
	bare.AuthInfos[parsed.Contexts[parsed.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: user.Token}
	access, err := clientcmd.NewDefaultClientConfig(*bare, nil).ClientConfig()
	if err != nil {
		return nil, end, errors.New("there is no kubeconfig with a current context")
	}
	kube, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, end, errors.New("the kubeconfig cannot be used: its certificates or address are malformed")
	}
	user.Token, end, err = newToken(ctx, kube, namespace, name, lasts)
	if err != nil {
		return nil, end, err
	}
	renewed, err = clientcmd.Write(*parsed)
	return renewed, end, err
}
