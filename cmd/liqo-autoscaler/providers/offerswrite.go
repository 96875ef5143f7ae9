package providers

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	apiv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/file"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/secrets"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
)

func newOffersPut() *cobra.Command {
	return onServer(&cobra.Command{
		Use:   "put FILE",
		Short: "Publish an offer on the discovery server, or replace your own",
		Example: "  liqo-autoscaler offers put milan.yaml --discovery-url https://offers.example:9010 " +
			"--discovery-token-file token",
	}, &client.Options{}, func(ctx context.Context, to *client.Client, path string) (string, error) {
		offer, err := readPosted(path)
		if err != nil {
			return "", err
		}
		put, err := to.Put(ctx, offer)
		return fmt.Sprintf("offer %s is published for %.0f s", offer.Name, put.RemainingSeconds), err
	})
}

func newOffersDelete() *cobra.Command {
	var to client.Options
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove your offer from the discovery server; it is not an error if the server has no such offer",
		Example: "  liqo-autoscaler offers delete milan --discovery-url https://offers.example:9010 " +
			"--discovery-token-file token",
		ValidArgsFunction: complete.OnlyFirst(func(ctx context.Context) ([]string, error) {
			connection, err := client.New(to)
			if err != nil {
				return nil, err
			}
			return connection.Names(ctx)
		}),
	}
	return onServer(cmd, &to, func(ctx context.Context, to *client.Client, name string) (string, error) {
		return fmt.Sprintf("offer %s is deleted", name), to.Delete(ctx, name)
	})
}

// onServer completes a command with one argument. The command calls the discovery server with the function do, and
// prints the result.
func onServer(cmd *cobra.Command, to *client.Options,
	do func(context.Context, *client.Client, string) (string, error)) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = cli.Brief(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if err := serve.CheckDiscovery(*to); err != nil {
			return err
		}
		connection, err := client.New(*to)
		if err != nil {
			return err
		}
		done, err := do(ctx, connection, args[0])
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
		}
		return err
	})
	serve.RegisterDiscovery(cmd, to, "the discovery server, https://host:port (required)")
	_ = cmd.MarkFlagRequired("discovery-url")
	return cmd
}

// readPosted reads a YAML or JSON file with an offer for the discovery server. The error of readPosted lists all
// faults of the file.
func readPosted(path string) (api.Posted, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return api.Posted{}, err
	}
	offer, err := api.Decode(raw)
	if err != nil {
		return api.Posted{}, fmt.Errorf("%s:\n%w", path, err)
	}
	return offer, nil
}

func newOffersValidate() *cobra.Command {
	var posted bool
	cmd := &cobra.Command{
		Use:    "validate FILE",
		Short:  "Check an offers file and print all errors, one per line",
		Args:   cobra.ExactArgs(1),
		PreRun: cli.EndAtOnce,
		RunE: func(cmd *cobra.Command, args []string) error {
			if posted {
				offer, err := readPosted(args[0])
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: offer %s\n", offer.Name)
				}
				return err
			}
			source, err := file.Open(args[0])
			if err != nil {
				return err
			}
			offers, _, err := source.List(cmd.Context())
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: %d offers\n", len(offers))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&posted, "posted", false, "check a file with one offer for the discovery server, in the form "+
		"that offers put reads")
	return cmd
}

func newOffersAdd() *cobra.Command {
	var access, info, namespace, kubeconfig string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Store a provider's kubeconfig in a Secret of the consumer's cluster, for use by an offer",
		Long: `Store a provider's kubeconfig in Secret NAME of the consumer's cluster. With --info the Secret also contains an offer,
for workers with --offer-secrets-namespace. Without --info an offer from another source can refer to the Secret. The
command does not change a Secret of this name that another program or person created.`,
		Example: "  liqo-autoscaler offers add milan --provider-kubeconfig milan.kubeconfig",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			data := map[string][]byte{}
			for key, path := range map[string]string{credentialsKey: access, secrets.KeyInfo: info} {
				raw, err := os.ReadFile(path)
				if path != "" && err != nil {
					return err
				}
				if path != "" {
					data[key] = raw
				}
			}
			to, err := administrator(kubeconfig)
			if err != nil {
				return err
			}
			kube, err := kubernetes.NewForConfig(to)
			if err != nil {
				return err
			}
			if err := addOffer(ctx, kube, namespace, args[0], data); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Secret %s/%s is stored\n", namespace, args[0])
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVar(&access, "provider-kubeconfig", "",
		"file with the provider's kubeconfig, the output of provider-access kubeconfig (required)")
	f.StringVar(&info, "info", "", "YAML file with the offer to store in the Secret (default: no offer)")
	f.StringVarP(&namespace, "namespace", "n", "liqo-autoscaler", "the Secret's namespace")
	f.StringVar(&kubeconfig, "kubeconfig", "", "access to the consumer's cluster (default: as kubectl finds it)")
	_ = cmd.MarkFlagRequired("provider-kubeconfig")
	return cmd
}

// addOffer writes the Secret of an offer, or of credentials only. It is idempotent. It returns an error for a Secret
// that this command did not create, and for data that a worker would refuse.
func addOffer(ctx context.Context, kube kubernetes.Interface, namespace, name string, data map[string][]byte) error {
	secret := corev1.Secret(name, namespace).WithData(data).WithType(apiv1.SecretTypeOpaque)
	if _, offers := data[secrets.KeyInfo]; offers {
		secret.WithLabels(secrets.Label)
	}
	if err := secrets.Check(namespace, name, data); err != nil {
		return err
	}
	const manager = "liqo-autoscaler-offers-add"
	_, err := kube.CoreV1().Secrets(namespace).Apply(ctx, secret, metav1.ApplyOptions{FieldManager: manager})
	if err != nil {
		return fmt.Errorf("store Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}

// NewWriters returns the command writers.
func NewWriters() *cobra.Command {
	return cli.Parent("writers", "Check the discovery server's writers file", &cobra.Command{
		Use:    "validate FILE",
		Short:  "Check a writers file and print all errors, one per line",
		Args:   cobra.ExactArgs(1),
		PreRun: cli.EndAtOnce,
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			writers, err := server.ParseWriters(raw)
			if err != nil {
				return errors.Join(errors.New(args[0]+":"), err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: %d writers\n", len(writers))
			return err
		},
	})
}
