package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// A misspelt command must fail. Otherwise `config valdate FILE` would succeed in a pipeline without checking the
// file.
func TestMisspeltConfigCommandFails(t *testing.T) {
	_, _, err := command(t.Context(), "config", "valdate", "x.yaml")
	require.ErrorContains(t, err, `unknown command "valdate"`)
	out, _, err := command(t.Context(), "config")
	require.NoError(t, err)
	require.Contains(t, out, "validate")
}

// A flag with a wrong value is refused, even if the flag has no effect on the command.
func TestFlagsWithoutEffectAreChecked(t *testing.T) {
	for _, args := range [][]string{
		{"status", "--log-level", "loud"}, {"status", "--log-format", "loud"}, {"offers", "--log-level", "loud"}, {"offers",
			"--backend", "loud"},
	} {
		_, _, err := command(t.Context(), args...)
		require.ErrorContains(t, err, args[1]+` "loud": use `, args)
	}
}

// A command waits for its input. Ctrl-C ends it.
func TestInterruptEndsACommandThatReads(t *testing.T) {
	if pipe := os.Getenv("LIQO_AUTOSCALER_READS"); pipe != "" {
		readFrom(pipe)
		return
	}
	for _, args := range []string{"config validate PIPE", "config view PIPE", "config cloud-config --config PIPE",
		"discovery hash-token"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			cmd := exec.Command(os.Args[0], "-test.run=^TestInterruptEndsACommandThatReads$")
			cmd.Env = append(os.Environ(), "LIQO_AUTOSCALER_READS="+pipe, "LIQO_AUTOSCALER_ARGS="+args)
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			in := untilRead(t, pipe)
			defer in.Close()
			require.Empty(t, ended, "it ended although its input continues")

			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
			select {
			case err := <-ended:
				require.EqualError(t, err, "signal: interrupt")
			case <-time.After(2 * time.Minute):
				require.Fail(t, "Ctrl-C does not end a read")
			}
		})
	}
}

// readFrom runs the command as main does, with the pipe as its input.
func readFrom(pipe string) {
	args := strings.Replace(os.Getenv("LIQO_AUTOSCALER_ARGS"), "PIPE", pipe, 1)
	if !strings.Contains(args, pipe) {
		in, err := os.Open(pipe)
		if err != nil {
			panic(err)
		}
		os.Stdin = in
	}
	os.Args = append([]string{"liqo-autoscaler"}, strings.Fields(args)...)
	main()
}

// untilRead returns the writing end of the pipe as soon as the command has read a byte and waits for more.
func untilRead(t *testing.T, pipe string) *os.File {
	t.Helper()
	var in *os.File
	testkit.Until(t, 2*time.Minute, "the command reads", func() (err error) {
		in, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err
	})
	_, err := in.WriteString("x")
	require.NoError(t, err)
	testkit.Until(t, 2*time.Minute, "what is written is read", func() error {
		left, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ) //nolint:gosec // a descriptor fits
		if err == nil && left > 0 {
			return fmt.Errorf("%d bytes are left", left)
		}
		return err
	})
	return in
}

func TestInvalidHubIsRefused(t *testing.T) {
	for _, name := range []string{"", "East", "a/b", "-a", "abcdefghijklmnopqrstuvwxy"} {
		_, _, err := command(t.Context(), "status", "--hub", name)
		require.ErrorContains(t, err, "use at most 24 lower-case letters", name)
	}
}

func TestExplainMisuse(t *testing.T) {
	want := `want the pod as NAMESPACE/NAME, as in "liqo-autoscaler explain pod default/web-0"`
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	for says, all := range map[string][][]string{
		want:                                  {{"pod"}, {"pod", "a/"}, {"pod", "/b"}, {"pod", "a/b", "c"}},
		"want pod NAMESPACE/NAME":             {{}, {"node", "x"}},
		`unknown command "shop/web"`:          {{"pod", "--file", "pod.yaml", "shop/web"}},
		`--output "yaml": use text or json`:   {{"pod", "a/b", "-o", "yaml"}, {"instance", "a", "-o", "yaml"}, {"group", "a", "-o", "yaml"}},
		"accepts 1 arg(s), received 0":        {{"instance"}, {"group"}},
		"access to the consumer cluster (--k": {{"pod", "a/b", "--kubeconfig", nowhere}},
	} {
		for _, args := range all {
			_, _, err := command(t.Context(), append([]string{"explain"}, args...)...)
			require.ErrorContains(t, err, says, args)
		}
	}
}

func TestReportMisuse(t *testing.T) {
	for _, args := range [][]string{{"report", "--since", "soon"}, {"report", "-o", "xml"}, {"report", "all"}} {
		_, _, err := command(t.Context(), args...)
		require.Error(t, err, args)
	}
}
