package setup

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// NewTemporal returns the command temporal.
func NewTemporal(c *connect.Common) *cobra.Command {
	return cli.Parent("temporal", "Prepare a Temporal service for liqo-autoscaler", newTemporalSetup(c),
		newAdoptHub(c), newCodec(c))
}

type setupFlags struct{ retention, wait time.Duration }

func newTemporalSetup(c *connect.Common) *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the namespace and the search attributes, where they are missing",
		Long: `Create the namespace and the search attributes, where they are missing. It does not change an existing namespace or
attribute, so you can run it again at any time.`,
		Example: "  liqo-autoscaler temporal setup --temporal-address temporal:7233 --temporal-namespace autoscaling " +
			"--retention 168h",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup(cmd.Context(), c, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().DurationVar(&f.retention, "retention", 72*time.Hour,
		"how long a new namespace keeps closed workflows; at least 24h")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "how long to wait until Temporal answers")
	return cmd
}

func setup(ctx context.Context, c *connect.Common, f setupFlags, out, errOut io.Writer) error {
	if f.retention < connect.MinRetention {
		return fmt.Errorf("--retention %s: use 24h or more", f.retention)
	}
	t, target, err := c.Dial(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer t.Close()
	if err := reached(ctx, t, target, f.wait, errOut); err != nil {
		return err
	}
	kept, created, err := target.EnsureNamespace(ctx, t, f.retention)
	if err != nil {
		return err
	}
	is := "is there"
	if created {
		is = "created"
	}
	fmt.Fprintf(out, "namespace %s: %s, keeps ended workflows for %s\n", target.Namespace, is, kept)
	made, err := searchattr.Register(ctx, t, target.Namespace)
	if err != nil {
		return target.Explain(ctx, err)
	}
	said := "are there"
	if len(made) > 0 {
		said = "registered: " + strings.Join(made, ", ")
	}
	fmt.Fprintf(out, "search attributes %s: %s\n", strings.Join(workflows.SearchAttributes, ", "), said)
	return nil
}

// reached waits until Temporal responds. The parameter limit is the longest wait.
func reached(ctx context.Context, t client.Client, target *connect.Target, limit time.Duration,
	errOut io.Writer) error {
	return cli.Patiently(ctx, limit, errOut, func() (again bool, err error) {
		err = target.Check(ctx, t)
		code := connect.ExitCode(err)
		if code == connect.ExitNamespace {
			return false, nil
		}
		return code == connect.ExitUnreachable, err
	})
}
