package clock_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/clock"
)

// program prints the time, and for how long it has run: the difference between two readings of the clock. A timer
// ends it.
const program = `package main

import "time"

func main() {
	began := time.Now()
	<-time.After(time.Millisecond)
	println(time.Now().Unix(), time.Since(began), time.Until(began.Add(time.Minute)), began.Round(0) != began)
}
`

func TestBuiltProgramHasAWrongClock(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	overlay, err := clock.Overlay(dir)
	require.NoError(t, err)
	built := filepath.Join(dir, "built")
	said, err := exec.Command("go", "build", overlay, "-o", built, filepath.Join(dir, "main.go")).CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		run := exec.Command(built)
		run.Env = append(os.Environ(), clock.Off(off))
		said, err := run.CombinedOutput()
		require.NoError(t, err, "%s", said)
		var (
			at         int64
			ran, until time.Duration
			monotonic  bool
		)
		_, err = fmt.Sscan(string(said), &at, (*int64)(&ran), (*int64)(&until), &monotonic)
		require.NoError(t, err, "%s", said)
		require.WithinDuration(t, time.Now().Add(off), time.Unix(at, 0), time.Hour/2)
		require.Positive(t, ran)
		require.Less(t, ran, time.Hour/2)
		require.Less(t, until, time.Minute)
		require.True(t, monotonic, "time.Now has no monotonic reading")
	}
}
