package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A misspelt command must fail: in a pipeline `config valdate FILE` would check nothing and pass.
func TestMisspeltConfigCommandFails(t *testing.T) {
	_, _, err := command(t.Context(), "config", "valdate", "x.yaml")
	require.ErrorContains(t, err, `unknown command "valdate"`)
	out, _, err := command(t.Context(), "config")
	require.NoError(t, err)
	require.Contains(t, out, "validate")
}

// A flag that has no use here is still wrong when its value is.
func TestUselessFlagsAreChecked(t *testing.T) {
	for _, args := range [][]string{
		{"status", "--log-level", "loud"}, {"status", "--log-format", "loud"}, {"offers", "--log-level", "loud"}, {"offers",
			"--backend", "loud"},
	} {
		_, _, err := command(t.Context(), args...)
		require.ErrorContains(t, err, args[1]+` "loud": use `, args)
	}
}

// Ctrl-C ends a command that waits for its input.
func TestInterruptEndsARead(t *testing.T) {
	if pipe := os.Getenv("LIQO_AUTOSCALER_READS"); pipe != "" {
		os.Args = []string{"liqo-autoscaler", "config", "validate", pipe}
		main()
		return
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	cmd := exec.Command(os.Args[0], "-test.run=^TestInterruptEndsARead$")
	cmd.Env = append(os.Environ(), "LIQO_AUTOSCALER_READS="+pipe)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	in, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once the other side reads
	require.NoError(t, err)
	defer in.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	select {
	case err := <-ended:
		require.EqualError(t, err, "signal: interrupt")
	case <-time.After(30 * time.Second):
		require.Fail(t, "Ctrl-C does not end a read")
	}
}

func TestHubFlag(t *testing.T) {
	for _, name := range []string{"", "East", "a/b", "-a", "abcdefghijklmnopqrstuvwxy"} {
		_, _, err := command(t.Context(), "status", "--hub", name)
		require.ErrorContains(t, err, "use at most 24 lower-case letters", name)
	}
}
