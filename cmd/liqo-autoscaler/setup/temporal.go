package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// NewTemporal makes the command temporal.
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
		Long: `Create the namespace and the search attributes, where they are missing. It does not change what exists, so you
can run it again at any time.`,
		Example: "  liqo-autoscaler temporal setup --temporal-address temporal:7233 --temporal-namespace autoscaling " +
			"--retention 168h",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup(cmd.Context(), c, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().DurationVar(&f.retention, "retention", 72*time.Hour,
		"how long a new namespace keeps workflows that have ended; at least 24h")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "how long to wait for a Temporal that does not answer")
	return cmd
}

func setup(ctx context.Context, c *connect.Common, f setupFlags, out, errOut io.Writer) error {
	if f.retention < 24*time.Hour {
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
	if err := ensureNamespace(ctx, t, target, f.retention, out); err != nil {
		return err
	}
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

// reached waits until Temporal answers anything.
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

func ensureNamespace(ctx context.Context, t client.Client, target *connect.Target, retention time.Duration,
	out io.Writer) error {
	service := t.WorkflowService()
	got, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: target.Namespace})
	if err == nil {
		has := got.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
		fmt.Fprintf(out, "namespace %s: is there, keeps ended workflows for %s\n", target.Namespace, has)
		return nil
	}
	var missing *serviceerror.NamespaceNotFound
	if !errors.As(err, &missing) {
		return target.Explain(ctx, err)
	}
	_, err = service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: target.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
		Description: "liqo-autoscaler",
	})
	var exists *serviceerror.NamespaceAlreadyExists
	switch code := serviceerror.ToStatus(err).Code(); {
	case err == nil, errors.As(err, &exists): // somebody else at the same time
	case code == codes.PermissionDenied, code == codes.Unimplemented:
		return fmt.Errorf("this account may not create namespace %s (%w): have it created, with a retention of %s, and run "+
			"this again", target.Namespace, err, retention)
	default:
		return target.Explain(ctx, fmt.Errorf("create namespace %s: %w", target.Namespace, err))
	}
	fmt.Fprintf(out, "namespace %s: created, keeps ended workflows for %s\n", target.Namespace, retention)
	return nil
}
