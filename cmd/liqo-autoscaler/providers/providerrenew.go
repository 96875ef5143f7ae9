package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// credentialsKey is the default key of an offer's kubeconfig in its Secret.
const credentialsKey = "kubeconfig"

// renewals selects the kubeconfigs whose tokens the command replaces: a file, or Secrets in the consumer cluster.
type renewals struct {
	file       string
	secrets    []string // namespace/name
	namespaces []string // namespaces whose labelled Secrets are renewed
	key        string
	kubeconfig string // access to the consumer cluster, for Secrets
	lasts      time.Duration
	due        bool
}

func newProviderRenew() *cobra.Command {
	var r renewals
	cmd := &cobra.Command{
		Use:   "renew",
		Short: "Renew the tokens in kubeconfigs of providers",
		Long: `Request a new token with a provider's kubeconfig, and write it to the same file or Secret. The worker uses the new
token immediately. The old token stays valid until it expires. An expired token cannot be renewed: the provider must
then issue another one with provider-access kubeconfig.

The chart's CronJob runs this command with --due: it renews each token after a third of its lifetime. It skips Secrets
that another program owns or that have no token, and prints a line for each. The command fails if a token that is due
could not be renewed, but still renews the other tokens.`,
		Example: "  liqo-autoscaler provider-access renew --secret liqo-autoscaler/milan\n" +
			"  liqo-autoscaler provider-access renew --file milan.kubeconfig --duration 720h\n" +
			"  liqo-autoscaler provider-access renew --due --secrets-in liqo-autoscaler",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return r.check() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), renewTime)
			defer cancel()
			if r.file == "" {
				return r.inSecrets(ctx, cmd.OutOrStdout())
			}
			end, err := r.inFile(ctx)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), hasToken(r.file, end))
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.file, "file", "", "the provider's kubeconfig")
	f.StringArrayVar(&r.secrets, "secret", nil,
		"NAMESPACE/NAME, or NAMESPACE/NAME/KEY, of a Secret with a provider's kubeconfig in the consumer's cluster; "+
			"can be repeated")
	f.StringArrayVar(&r.namespaces, "secrets-in", nil,
		"a namespace whose Secrets with the label "+labelRenew+"=true or autoscaling=true contain kubeconfigs; can be "+
			"repeated")
	f.StringVar(&r.key, "key", credentialsKey, "key of the kubeconfig in a Secret")
	f.StringVar(&r.kubeconfig, "kubeconfig", "",
		"access to the consumer's cluster, for Secrets (default: as kubectl finds it)")
	f.BoolVar(&r.due, "due", false,
		"renew only tokens that have used a third of their lifetime, and skip Secrets that cannot be renewed")
	RegisterDuration(cmd, &r.lasts)
	return cmd
}

// renewTime is the maximum duration of the command, because some providers may not respond.
const renewTime = 4 * time.Minute

func hasToken(what string, end time.Time) string {
	return fmt.Sprintf("%s has a token that is valid until %s", what, end.UTC().Format(time.RFC3339))
}

// check returns an error if the flags select no kubeconfig, or both a file and Secrets.
func (r renewals) check() error {
	secrets := len(r.secrets)+len(r.namespaces) > 0
	if (r.file == "") == !secrets {
		return errors.New("give --file, or --secret and --secrets-in")
	}
	if r.due && r.file != "" {
		return errors.New("--due is for Secrets")
	}
	for _, name := range r.secrets {
		if parts := strings.Split(name, "/"); len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
			return fmt.Errorf("--secret %q: give NAMESPACE/NAME or NAMESPACE/NAME/KEY", name)
		}
	}
	return nil
}

// inFile renews the token in a file. It replaces the file atomically, so that a reader sees either the old or the new
// content.
func (r renewals) inFile(ctx context.Context) (end time.Time, err error) {
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
