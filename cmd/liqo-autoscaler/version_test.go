package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// A version becomes current once its workers poll every lane, and not before.
func TestSetCurrentVersion(t *testing.T) {
	address := devserver.New(t)
	run := func(args ...string) (string, error) {
		out, _, err := command(t.Context(), append([]string{"temporal", "set-current-version", "--temporal-address",
			address}, args...)...)
		return out, err
	}
	_, err := run()
	require.ErrorContains(t, err, "which workers: give --deployment-name")
	_, err = run("--deployment-name", "la")
	require.ErrorContains(t, err, "this binary was built without a version: give --build-id")
	_, err = run("--deployment-name", "la.x", "--build-id", "v1")
	require.ErrorContains(t, err, "use no dot")
	_, err = run("--deployment-name", "la", "--build-id", "v1")
	require.ErrorContains(t, err, "no worker of version v1 has come")

	temporal := devserver.Dial(t, address)
	lane := func(build string, l workflows.Lane) {
		t.Helper()
		w := sdkworker.New(temporal, l.Queue(workflows.TaskQueue), sdkworker.Options{
			DeploymentOptions: sdkworker.DeploymentOptions{UseVersioning: true,
				Version:                   sdkworker.WorkerDeploymentVersion{DeploymentName: "la", BuildID: build},
				DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade},
		})
		w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "X"})
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	lane("v1", workflows.LaneEntities)
	testkit.Until(t, time.Minute, "one lane is not enough", func() error {
		v, err := temporal.WorkerDeploymentClient().GetHandle("la").DescribeVersion(t.Context(),
			client.WorkerDeploymentDescribeVersionOptions{BuildID: "v1"})
		if err == nil && len(v.Info.TaskQueuesInfos) == 0 {
			err = errors.New("it has no task queue yet")
		}
		return err
	})
	_, err = run("--deployment-name", "la", "--build-id", "v1")
	require.ErrorContains(t, err, "no worker of version v1 has polled liqo-autoscaler-drivers, liqo-autoscaler-making")
	for _, l := range workflows.Lanes[1:] {
		lane("v1", l)
	}
	out, err := run("--deployment-name", "la", "--build-id", "v1", "--wait", "2m")
	require.NoError(t, err)
	require.Regexp(t, `v1 +current +get all that is new`, out)

	t.Setenv(parts.EnvDeployment, "la")
	t.Setenv(parts.EnvBuild, "v2")
	for _, l := range workflows.Lanes {
		lane("v2", l)
	}
	out, err = run("--wait", "2m")
	require.NoError(t, err)
	require.Regexp(t, `v2 +current .*\nv1 `, out)
	out, err = run("--unversioned", "--wait", "2m")
	require.NoError(t, err)
	require.Regexp(t, `none +current +those without --deployment-name\n`, out)
}
