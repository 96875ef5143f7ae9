package connect

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
)

// ErrDatabase is the cause of a Failure when Temporal answers, but cannot read its own database.
var ErrDatabase = errors.New("temporal cannot read its database")

// These constants bound the two requests of cannotRead.
const (
	infoTimeout = time.Second
	readTimeout = 3 * time.Second
)

// cannotRead returns an error if Temporal answers but cannot read its own database. In this state Temporal reports
// that existing namespaces are missing (server 1.29 does this for each error of a read), and its health check reports
// no error. cannotRead sends two requests. For the first, Temporal does not need the database. For the second, it
// needs the database but no namespace.
func (t *Target) cannotRead(ctx context.Context) (why error) {
	options := t.Options()
	options.Logger = temporalLog{log: slog.New(slog.DiscardHandler)}
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil
	}
	defer c.Close()
	ask := func(bound time.Duration, do func(context.Context) error) error {
		asking, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		return do(asking)
	}
	if err := ask(infoTimeout, func(asking context.Context) error {
		_, err := c.WorkflowService().GetSystemInfo(asking, &workflowservice.GetSystemInfoRequest{})
		return err
	}); err != nil {
		return nil
	}
	err = ask(readTimeout, func(asking context.Context) error {
		_, err := c.WorkflowService().GetClusterInfo(asking, &workflowservice.GetClusterInfoRequest{})
		return err
	})
	if ctx.Err() != nil {
		return nil // the caller's ctx has ended, so the error proves nothing
	}
	broken := []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown}
	if slices.Contains(broken, codeOf(err)) {
		return err
	}
	return nil
}

// withoutDatabase returns the Failure for an error that cannotRead has returned.
func (t *Target) withoutDatabase(why error) *Failure {
	f := fail(ExitUnreachable, "Temporal at %s answers, but cannot read its database, so it reports that namespaces are "+
		"missing (%v): look at its own log, and restart it; the temporal CLI's dev server stays so until its restart",
		t.Address, why)
	f.cause = ErrDatabase
	return f
}
