package proc_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

func shell(t *testing.T, name, script string) *proc.Process {
	t.Helper()
	p, err := proc.Start(proc.Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, LogDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func TestStopSendsSIGTERMThenKills(t *testing.T) {
	polite := shell(t, "polite", `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)
	require.Eventually(t, func() bool { return proc.Tail(polite.Log, 1) == "ready" }, time.Minute, 10*time.Millisecond)
	require.NoError(t, polite.Stop(time.Minute))
	require.Equal(t, "bye", proc.Tail(polite.Log, 1))

	deaf := shell(t, "deaf", `trap '' TERM; echo ready; while :; do sleep 0.05; done`)
	require.Eventually(t, func() bool { return proc.Tail(deaf.Log, 1) == "ready" }, time.Minute, 10*time.Millisecond)
	require.Error(t, deaf.Stop(50*time.Millisecond), "killed")
}

func TestUntilReportsWhyTheProcessIsNotReady(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	never := func(context.Context) error { return errors.New("no answer") }

	err := shell(t, "short", "echo cannot listen; exit 3").Until(ctx, never)
	require.ErrorIs(t, err, proc.ErrEnded)
	require.ErrorContains(t, err, "cannot listen")
	require.ErrorContains(t, err, "exit status 3")

	hurried, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	err = shell(t, "long", "sleep 60").Until(hurried, never)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no answer")

	require.NoError(t, shell(t, "fine", "sleep 60").Until(ctx, func(context.Context) error { return nil }))
}

func TestTailReturnsTheLastLines(t *testing.T) {
	path := t.TempDir() + "/a.log"
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600))
	require.Equal(t, "two\nthree", proc.Tail(path, 2))
	require.Equal(t, "one\ntwo\nthree", proc.Tail(path, 9))
	require.Contains(t, proc.Tail(path+".absent", 9), "no such file")
}

func TestFreePortsAreDistinct(t *testing.T) {
	ports, err := proc.FreePorts(5)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, p := range ports {
		seen[p] = true
	}
	require.Len(t, seen, 5)
}
