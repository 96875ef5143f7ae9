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

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
)

// CLI finds the temporal CLI in bin beside a go.mod above the test's folder, or else in PATH.
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

// Start starts a server for a TestMain. Its data are in a folder that stop removes. Attributes are the custom search
// attributes, all of type Keyword.
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

// New starts a server that ends with the test.
func New(t testing.TB, attributes ...string) (address string) {
	t.Helper()
	address, stop, err := Start(attributes...)
	require.NoError(t, err)
	t.Cleanup(stop)
	return address
}

// Dial connects to a server until the test ends.
func Dial(t testing.TB, address string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address, Logger: Quiet()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Quiet is a logger of the Temporal SDK that logs nothing.
func Quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
