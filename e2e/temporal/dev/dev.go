// Package dev runs the temporal CLI's dev server on a file, for suites that stop and start the server.
package dev

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// startLimit bounds the start of a server on a busy machine.
const startLimit = 5 * time.Minute

// Start starts a server at the address, host:port, and waits until it answers. Its database is in the file, which it
// creates if the file does not exist. The server's log is in the folder logs. The parameter more contains further
// arguments of the command. The server ends with the test.
func Start(t testing.TB, address, file, logs string, more ...string) *proc.Process {
	t.Helper()
	cli, err := devserver.CLI()
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	args := append([]string{"server", "start-dev", "--headless", "--ip", host, "--port", port, "--db-filename", file,
		"--log-level", "error"}, more...)
	for _, a := range workflows.SearchAttributes {
		args = append(args, "--search-attribute", a+"=Keyword")
	}
	p, err := proc.Start(proc.Spec{Name: "temporal", Path: cli, Args: args, LogDir: logs})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	c, err := client.NewLazyClient(client.Options{HostPort: address, Logger: devserver.Quiet()})
	require.NoError(t, err)
	defer c.Close()
	testkit.Until(t, startLimit, "Temporal answers", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
		return err
	})
	return p
}

// ClearEnvironment removes the settings of the developer's own Temporal from the environment of this process, and so
// also from the processes that it starts.
func ClearEnvironment() {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TEMPORAL_") {
			_ = os.Unsetenv(name)
		}
	}
}
