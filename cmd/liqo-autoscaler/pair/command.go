package pair

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/complete"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/providers"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// runTime is the maximum duration of the command. It is long because a provider may have many pods.
const runTime = 5 * time.Minute

// NewSetup returns the command setup.
func NewSetup(c *connect.Common) *cobra.Command { return newSetup(c, open) }

// opener is a function that connects to a cluster, such as open.
type opener func(side, kubeconfig, context string) (*cluster, error)

func newSetup(c *connect.Common, open opener) *cobra.Command {
	o := &options{open: open}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Set up a consumer and a provider, and write the values of both charts",
		Long: `Set up a consumer and a provider if you are the administrator of both. The command reads both Liqo cluster ids and
versions, gives the consumer access to the provider, stores the offer with its credentials in a Secret of the
consumer, measures the free capacity of the provider, writes values.yaml for the liqo-autoscaler chart and
ca-values.yaml for Cluster Autoscaler's chart, and prints the next command. Run it again for each further provider.
Existing values files stay unchanged.

A second run for the same provider changes nothing: it keeps a valid token and the amounts of the offer. The command
changes and removes only objects with the label liqo-autoscaler.io/setup, never overwrites a file, and never prints a
token. If the clusters have different administrators, the provider's administrator runs setup provider, and the
consumer's administrator runs setup consumer with the output.`,
		Example: `  liqo-autoscaler setup --consumer-context munich --provider-context milan
  liqo-autoscaler setup --consumer-context munich --provider-context milan --dry-run
  liqo-autoscaler setup --consumer-context munich --provider-context milan --undo`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.consumerContext == "" || o.providerContext == "" {
				return errors.New("give --consumer-context and --provider-context, contexts of your kubeconfig; with two owners " +
					"use setup provider and setup consumer")
			}
			if o.consumerContext == o.providerContext {
				return errors.New("--consumer-context and --provider-context are the same: name two clusters")
			}
			return o.check(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.values.temporalAddress = c.Temporal.Address
			return o.run(cmd, cmd.OutOrStdout(), (*run).setupBoth, (*run).undoBoth)
		},
	}
	cmd.Flags().StringVar(&o.consumerContext, "consumer-context", "",
		"context of the consumer in the kubeconfig; required")
	cmd.Flags().StringVar(&o.providerContext, "provider-context", "",
		"context of the provider in the kubeconfig; required")
	cmd.Flags().BoolVar(&o.measure, "measure", false, "measure the provider again, and replace the amounts of the offer")
	o.registerBoth(cmd)
	o.registerProvider(cmd)
	o.registerConsumer(cmd)
	cmd.AddCommand(newProvider(open), newConsumer(c, open))
	return cmd
}

func newProvider(open opener) *cobra.Command {
	o := &options{open: open, namespace: release}
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Apply the consumer's access on the provider, and write a document for setup consumer",
		Long: `The provider's half of setup, for its administrator: it applies the access of the consumer, measures the free
capacity, and writes a document for setup consumer. The document contains a token. It is written to a new file that
only you can read (--output), or to stdout if that is not a terminal. Send it over a confidential channel, and delete
it after use.`,
		Example: `  liqo-autoscaler setup provider --context milan --consumer-id munich --output milan.yaml
  liqo-autoscaler setup provider --context milan --consumer-id munich --undo`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.providerContext == "" {
				return errors.New("--context is missing: give the context of the provider in your kubeconfig")
			}
			if err := providers.CheckConsumer(o.consumerID); err != nil {
				return err
			}
			return o.check(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd, cmd.ErrOrStderr(), func(r *run, ctx context.Context) error {
				return r.setupProvider(ctx, cmd.OutOrStdout())
			}, (*run).undoProvider)
		},
	}
	cmd.Flags().StringVar(&o.providerContext, "context", "", "context of the provider in the kubeconfig; required")
	cmd.Flags().StringVar(&o.consumerID, "consumer-id", "", "Liqo cluster id of the consumer; required")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "new file for the document (default: stdout)")
	o.registerBoth(cmd)
	o.registerProvider(cmd)
	return cmd
}

func newConsumer(c *connect.Common, open opener) *cobra.Command {
	o := &options{open: open}
	cmd := &cobra.Command{
		Use:   "consumer",
		Short: "Store the offer of setup provider in the consumer, and write the values of both charts",
		Long: `The consumer's half of setup, for its administrator: it reads the document of setup provider, stores the offer in a
Secret, writes the values of both charts, and prints the next command.`,
		Example: `  liqo-autoscaler setup consumer --context munich --from milan.yaml
  liqo-autoscaler setup consumer --context munich --provider-id milan --undo`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.consumerContext == "":
				return errors.New("--context is missing: give the context of the consumer in your kubeconfig")
			case o.undo && !fleet.ValidProviderID(o.providerID):
				return errors.New("--undo needs --provider-id, the Liqo cluster id of the provider")
			case !o.undo && o.from == "":
				return errors.New("--from is missing: give the output of setup provider, or - for stdin")
			}
			return o.check(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.values.temporalAddress = c.Temporal.Address
			return o.run(cmd, cmd.OutOrStdout(), func(r *run, ctx context.Context) error {
				raw, err := readFrom(o.from, cmd.InOrStdin())
				if err != nil {
					return err
				}
				return r.setupConsumer(ctx, raw)
			}, (*run).undoConsumer)
		},
	}
	cmd.Flags().StringVar(&o.consumerContext, "context", "", "context of the consumer in the kubeconfig; required")
	cmd.Flags().StringVar(&o.from, "from", "", "file with the output of setup provider; - is stdin")
	cmd.Flags().StringVar(&o.providerID, "provider-id", "", "Liqo cluster id of the provider, for --undo")
	complete.Flag(c, cmd, "provider-id", complete.Providers)
	cmd.Flags().StringVar(&o.server, "provider-server", "",
		"address at which this cluster reaches the provider's API server (default: the address in the document)")
	o.registerBoth(cmd)
	o.registerConsumer(cmd)
	return cmd
}

// run calls the function undo if the flag --undo is set. Otherwise it calls the function do.
func (o *options) run(cmd *cobra.Command, report io.Writer, do, undo func(*run, context.Context) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), runTime)
	defer cancel()
	r := &run{options: o, out: report, now: time.Now}
	if o.undo {
		return undo(r, ctx)
	}
	return do(r, ctx)
}

// readFrom reads the document from a file or stdin. It reads at most one byte more than maxDocument, so that a larger
// document can be detected.
func readFrom(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxDocument+1))
	}
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return io.ReadAll(io.LimitReader(from, maxDocument+1))
}
