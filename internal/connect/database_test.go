package connect_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

// If Temporal cannot read its database, it reports that an existing namespace is missing. The error must name a
// restart as the remedy, and not `temporal setup`. The dev server (1.29.1) gives the answers in this test after
// SQLite has been interrupted.
func TestTemporalThatCannotReadItsDatabase(t *testing.T) {
	interrupted := serviceerror.NewUnavailable("GetClusterMetadata operation failed. Error: interrupted (9)")
	missing := serviceerror.NewNamespaceNotFound("there")
	for name, c := range map[string]struct {
		refuse, unread error
		code           int
		says           string
	}{
		"interrupted":           {missing, interrupted, connect.ExitUnreachable, "cannot read its database"},
		"interrupted, unlisted": {interrupted, interrupted, connect.ExitUnreachable, "cannot read its database"},
		"no such namespace":     {missing, nil, connect.ExitNamespace, "has no namespace there"},
		"another service fails": {serviceerror.NewUnavailable("shard closed"), nil, connect.ExitUnreachable,
			"accepts connections and does not answer"},
		"info is forbidden": {missing, serviceerror.NewPermissionDenied("no", ""), connect.ExitNamespace,
			"has no namespace there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the SDK repeats an Unavailable request until its deadline
			f := serve(t, nil)
			f.refuse, f.unread = c.refuse, c.unread
			target, client := dial(t, connect.Flags{Address: f.address, Namespace: "there"})
			err := target.Check(t.Context(), client)
			require.Equal(t, c.code, connect.ExitCode(err), "%v", err)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
			if c.unread != interrupted {
				require.NotErrorIs(t, err, connect.ErrDatabase)
				return
			}
			require.ErrorIs(t, err, connect.ErrDatabase)
			require.ErrorContains(t, err, "restart it")

			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.NotErrorIs(t, target.Explain(ended, missing), connect.ErrDatabase, "the caller has no time left")
		})
	}
}
