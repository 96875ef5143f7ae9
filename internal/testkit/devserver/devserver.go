// Package devserver starts Temporal's development server for tests.
package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// CLI returns the path of the temporal CLI. It searches the folder bin of the test's folder and of each folder above
// it, and then PATH. It returns an error if the CLI is not installed.
func CLI() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, "bin", "temporal"); executable(path) {
			return path, nil
		}
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	return "", errors.New("these tests need the temporal CLI: run make temporal")
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Start starts a server for a TestMain. stop ends the server and removes its data. attributes are custom search
// attributes of the type Keyword.
func Start(attributes ...string) (address string, stop func(), err error) {
	cli, err := CLI()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "liqo-autoscaler-temporal")
	if err != nil {
		return "", nil, err
	}
	o := testsuite.DevServerOptions{
		ExistingPath: cli, LogLevel: "error", DBFilename: filepath.Join(dir, "temporal.db"),
		ClientOptions: &client.Options{Logger: Quiet()},
	}
	for _, a := range attributes {
		o.ExtraArgs = append(o.ExtraArgs, "--search-attribute", a+"=Keyword")
	}
	s, err := testsuite.StartDevServer(context.Background(), o)
	if err != nil {
		return "", nil, fmt.Errorf("start the Temporal dev server: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	return s.FrontendHostPort(), func() { _ = errors.Join(s.Stop(), os.RemoveAll(dir)) }, nil
}

// New starts a server that runs until the test ends.
func New(t testing.TB, attributes ...string) (address string) {
	t.Helper()
	address, stop, err := Start(attributes...)
	require.NoError(t, err)
	t.Cleanup(stop)
	return address
}

// Dial returns a client that is connected to the server at the address. The connection ends with the test.
func Dial(t testing.TB, address string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address, Logger: Quiet()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// forgetLimit is how long Forget waits for Temporal's index and for the deletion, because both are asynchronous.
const forgetLimit = 2 * time.Minute

// Forget deletes the histories of all runs of a closed workflow, as Temporal does after the retention period. It
// blocks until the histories are deleted.
func Forget(t testing.TB, c client.Client, id string) {
	t.Helper()
	service, ofIt := c.WorkflowService(), "WorkflowId = '"+id+"'"
	var runs []*workflow.WorkflowExecutionInfo
	list := func() error {
		page, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: ofIt})
		runs = page.GetExecutions()
		return err
	}
	testkit.Until(t, forgetLimit, id+" is listed as closed", func() error {
		err := list()
		if err == nil && (len(runs) == 0 || runs[0].GetCloseTime() == nil) { // runs[0] is the newest run
			err = fmt.Errorf("%v", runs)
		}
		return err
	})
	for _, run := range runs {
		_, err := service.DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: client.DefaultNamespace, WorkflowExecution: run.GetExecution()})
		require.NoError(t, err)
	}
	testkit.Until(t, forgetLimit, id+" is forgotten", func() error {
		_, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		var notFound *serviceerror.NotFound
		if err = errors.Join(list(), err); !errors.As(err, &notFound) || len(runs) > 0 {
			return errors.Join(fmt.Errorf("%v", runs), err)
		}
		return nil
	})
}

// Quiet returns a logger for the Temporal SDK that logs nothing.
func Quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
