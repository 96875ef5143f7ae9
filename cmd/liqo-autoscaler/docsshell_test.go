package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// command returns a shell that runs the given text in the copy of the repository. The shell has its own process
// group.
func (g *guide) command(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = g.folder
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(g.folder, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	printed := &testkit.Buffer{}
	cmd.Stdout, cmd.Stderr, g.printed = printed, printed, printed.String
	g.t.Logf("$ %s", text)
	return cmd
}

// shell runs commands and waits until they end. The time limit is long enough for a first build.
func (g *guide) shell(text string) {
	ctx, cancel := context.WithTimeout(g.t.Context(), 30*time.Minute)
	defer cancel()
	err := g.command(ctx, text).Run()
	g.t.Log(g.printed())
	require.NoError(g.t, err)
}

// background runs commands until the guide ends. They then receive an interrupt, as if the user pressed Ctrl-C.
func (g *guide) background(text string) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := g.command(ctx, text)
	require.NoError(g.t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // the interrupt makes the command fail
	g.t.Cleanup(func() {
		cancel()
		<-ended
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	})
}
