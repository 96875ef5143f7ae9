package worker_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
)

// These are the environment variables of a worker process. The process runs this test binary again, so that a test
// can kill it.
const (
	envWorld    = "WORKER_TEST_WORLD"
	envQueue    = "WORKER_TEST_QUEUE"
	envTemporal = "WORKER_TEST_TEMPORAL"
	envBuild    = "WORKER_TEST_BUILD"
)

// workerProcess runs a worker until it is killed.
func workerProcess() int {
	sdkworker.SetBinaryChecksum(os.Getenv(envBuild)) // empty: the SDK computes it
	world, err := sim.Open(os.Getenv(envWorld))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	t, err := client.Dial(client.Options{HostPort: os.Getenv(envTemporal), Logger: quiet()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o, err := options(t, world, os.Getenv(envQueue), filepath.Join(filepath.Dir(os.Getenv(envWorld)), "offers.yaml"))
	if err == nil {
		err = worker.Run(context.Background(), o)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// spawn starts a worker process. It returns a function that kills the process with SIGKILL.
func (s *scene) spawn() (kill func()) {
	s.t.Helper()
	return s.spawnAt(devServer)
}

// spawnAt is like spawn, but the worker uses the Temporal server at this address.
func (s *scene) spawnAt(temporal string, env ...string) (kill func()) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], fmt.Sprintf("-record=%t", *record)) // -record decides the intervals of its drivers
	cmd.Env = append(os.Environ(), envWorld+"="+s.world.Path(), envQueue+"="+s.queue, envTemporal+"="+temporal)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	require.NoError(s.t, cmd.Start())
	dead := false
	kill = func() {
		if !dead {
			dead = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	s.t.Cleanup(kill)
	return kill
}
