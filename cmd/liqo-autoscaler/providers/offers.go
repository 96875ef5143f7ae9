package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// offersFlags contains the worker's flags that select sources of offers.
type offersFlags struct{ parts.BackendFlags }

// NewOffers returns the command offers.
func NewOffers(c *connect.Common) *cobra.Command {
	var f offersFlags
	var from serve.Published
	var format string
	cmd := &cobra.Command{
		Use:   "offers",
		Short: "Show the offers, their holds, and the peerings",
		Long: `Show the offers, the holds (capacity that is reserved for single attempts), and the peerings. With your kubeconfig the
command reads the market: the offers that the worker publishes. With the worker's flags for sources of offers it
queries these sources instead, as the worker does.

The column CURRENT shows whether an offer exists now: it is false for a provider that was used and whose offer was
removed. If the market cannot be read, CURRENT is unknown, and the command shows all providers that were used, each
with its last offer.`,
		Example: "  liqo-autoscaler offers\n  liqo-autoscaler offers --offers offers.yaml --kubeconfig consumer.kubeconfig " +
			"-o wide",
		Args: cobra.NoArgs,
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if err := errors.Join(output.CheckFormat(format), f.CheckKind()); err != nil {
				return err
			}
			document, err := f.readOffers(ctx, c, from, cmd.ErrOrStderr())
			if err != nil && len(document.Offers) == 0 {
				return err
			}
			return errors.Join(printOffers(cmd.OutOrStdout(), cmd.ErrOrStderr(), format, document), err)
		}),
	}
	cmd.AddCommand(newOffersAdd(), newOffersPut(), newOffersDelete(), newOffersValidate(), newOffersRepin(c))
	f.Register(cmd)
	from.Register(cmd)
	c.RegisterHub(cmd)
	cmd.Flags().StringVarP(&format, "output", "o", "table", "what to print: "+strings.Join(output.Formats, ", "))
	cli.Values(cmd, "output", output.Formats...)
	return cmd
}

// printOffers prints the document. If the format is a table, printOffers also prints the problems, to errOut.
func printOffers(out, errOut io.Writer, format string, document show.Offers) error {
	if format == "table" || format == "wide" {
		for _, p := range document.Problems {
			fmt.Fprintln(errOut, "left out:", p)
		}
	}
	return output.Print(out, format, output.StyleFor(out), document)
}

// removalsRead is the maximum number of peerings for which the command reads the present step of the removal.
const removalsRead = 20

// readOffers reads the providers and their offers. The offers come from the sources that the flags select or, without
// such a flag, from the market. readOffers prints problems with the market to notes.
func (f offersFlags) readOffers(ctx context.Context, c *connect.Common, from serve.Published,
	notes io.Writer) (show.Offers, error) {
	var states []fleet.ProviderSnapshot
	var group *fleet.GroupSpec
	var unread error
	removals := map[string]string{}
	if err := c.Run(ctx, func(t client.Client) (err error) {
		providers := flow.NewEntities(t, c.Hub, c.TaskQueue)
		names, err := providers.ProviderNames(ctx)
		if err == nil {
			states, unread = connect.ReadAll(names, true,
				func(name string) (fleet.ProviderSnapshot, error) { return providers.Status(ctx, name) })
		}
		if err != nil {
			return err
		}
		for _, p := range states {
			if p.Phase == fleet.Removing && len(removals) < removalsRead {
				w, err := providers.Removal(ctx, p.ID)
				if err != nil {
					unread = errors.Join(unread, fmt.Errorf("read the removal of the peering with %s: %w", p.ID, err))
					continue
				}
				removals[p.ID] = w.String()
			}
		}
		groups, err := providers.Groups(ctx)
		for _, g := range groups {
			if g.Spec != nil {
				group = g.Spec
			}
		}
		return err
	}); err != nil {
		return show.Offers{}, err
	}
	if !f.Sources.Given() {
		return show.OffersOf(states, f.published(ctx, c.Hub, from, notes), group).Waiting(removals), unread
	}
	offered, problems, err := f.offered(ctx, c.Hub)
	document := show.OffersOf(states, offered, group).Waiting(removals)
	document.Problems = problems
	return document, errors.Join(unread, err)
}

// published returns the offers of the market, or nil if it cannot read the market.
func (f offersFlags) published(ctx context.Context, hub workflows.Hub, from serve.Published,
	notes io.Writer) []fleet.Offer {
	m := from.Ask(ctx, f.Kubeconfig, string(hub), notes)
	if m != nil && m.Dropped > 0 {
		fmt.Fprintf(notes, "note: the market omits %d offers, because its size is limited\n", m.Dropped)
	}
	return serve.OffersIn(m)
}

// offered reads the offers from the sources.
func (f offersFlags) offered(ctx context.Context, hub workflows.Hub) ([]fleet.Offer, []string, error) {
	if err := f.Sources.Check(); err != nil {
		return nil, nil, err
	}
	b, consumer, err := f.Backend(hub)
	if err != nil {
		return nil, nil, err
	}
	catalog, err := f.Sources.Open(b, consumer, hub)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan error, 1)
	go func() { watched <- catalog.Watch(ctx) }()
	offers, found, err := catalog.Offers(ctx)
	cancel()
	if err := errors.Join(err, <-watched); err != nil {
		return nil, nil, fmt.Errorf("read offers: %w", err)
	}
	var problems []string
	for _, p := range found {
		problems = append(problems, p.String())
	}
	if offers == nil {
		offers = []fleet.Offer{}
	}
	return offers, problems, nil
}
