package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
)

// `temporal setup` creates the missing namespace and search attributes, and keeps existing ones. It does not change
// the objects of other programs.
func TestTemporalSetup(t *testing.T) {
	address := devserver.New(t)
	run := func(namespace string, args ...string) (string, error) {
		out, _, err := command(t.Context(), append([]string{"temporal", "setup", "--temporal-address", address,
			"--temporal-namespace", namespace}, args...)...)
		return out, err
	}
	_, _, err := command(t.Context(), "status", "--temporal-address", address, "--temporal-namespace", "edge")
	require.Equal(t, connect.ExitNamespace, connect.ExitCode(err), "%v", err)

	out, err := run("edge", "--retention", "48h")
	require.NoError(t, err)
	require.Contains(t, out, "namespace edge: created, keeps ended workflows for 48h0m0s\n")
	require.Contains(t, out, ": registered: LiqoGroup, LiqoInstance, LiqoProvider\n")
	out, err = run("edge", "--retention", "96h")
	require.NoError(t, err)
	require.Contains(t, out, "namespace edge: is there, keeps ended workflows for 48h0m0s\n")
	require.Contains(t, out, ": are there\n")
	out, _, err = command(t.Context(), "status", "--temporal-address", address, "--temporal-namespace", "edge")
	require.NoError(t, err)
	require.NotEmpty(t, out)

	_, err = devserver.Dial(t, address).OperatorService().AddSearchAttributes(t.Context(),
		&operatorservice.AddSearchAttributesRequest{Namespace: "default",
			SearchAttributes: map[string]enums.IndexedValueType{"LiqoGroup": enums.INDEXED_VALUE_TYPE_INT}})
	require.NoError(t, err)
	testkit.Until(t, time.Minute, "the attribute is in the way", func() error {
		_, err = run("default")
		if connect.ExitCode(err) == connect.ExitAttributes {
			return nil
		}
		return err
	})
	require.ErrorContains(t, err, "LiqoGroup (is Int, not Keyword)")

	_, err = run("edge", "--retention", "1h")
	require.ErrorContains(t, err, "--retention 1h0m0s: use 24h or more")
	_, errOut, err := command(t.Context(), "temporal", "setup", "--temporal-address", testkit.FreePorts(t, 1)[0], "--wait",
		"2s")
	require.Equal(t, connect.ExitUnreachable, connect.ExitCode(err))
	require.Contains(t, errOut, "waiting: no process listens")
}

// dev simulates nodes. If only an environment variable names the Temporal server, it may be a production server, so
// dev refuses to use it.
func TestDevKeepsAwayFromOtherTemporals(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "temporal.example.com:7233")
	_, _, err := command(t.Context(), "dev", "--dir", t.TempDir(), "--listen", "127.0.0.1:0", "--metrics-listen", "",
		"--health-listen", "")
	require.ErrorContains(t, err, "selects Temporal at temporal.example.com:7233, but dev simulates nodes")
}
