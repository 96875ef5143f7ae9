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

// command returns a shell in the copy of the repository, in its own process group.
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

// shell runs commands to their end. The limit is the time of a first build.
func (g *guide) shell(text string) {
	ctx, cancel := context.WithTimeout(g.t.Context(), 30*time.Minute)
	defer cancel()
	err := g.command(ctx, text).Run()
	g.t.Log(g.printed())
	require.NoError(g.t, err)
}

// background runs commands until the guide ends, as if the user pressed Ctrl-C at the end.
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
