package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// maxVersionName bounds deployment names and build ids, in bytes.
const maxVersionName = 200

// CheckVersion returns an error if the version is not valid. The error names the command line's flags. The zero value
// is valid and means a worker without versioning.
func CheckVersion(v worker.WorkerDeploymentVersion) error {
	switch {
	case !versioned(v):
		return nil
	case v.DeploymentName == "":
		return errors.New("a build id without a deployment: give --deployment-name")
	case strings.ContainsAny(v.DeploymentName, ".:") || strings.HasPrefix(v.DeploymentName, "__"):
		return fmt.Errorf("--deployment-name %q: use no dot, no colon, and no two underscores in front", v.DeploymentName)
	case v.BuildID == "" || strings.HasPrefix(v.BuildID, "__"):
		return fmt.Errorf("--build-id %q: name the version, without two underscores in front", v.BuildID)
	case len(v.DeploymentName) > maxVersionName || len(v.BuildID) > maxVersionName:
		return fmt.Errorf("--deployment-name and --build-id: use at most %d bytes each", maxVersionName)
	}
	return nil
}

func versioned(v worker.WorkerDeploymentVersion) bool { return v != worker.WorkerDeploymentVersion{} }

func deploymentOptions(v worker.WorkerDeploymentVersion) worker.DeploymentOptions {
	if !versioned(v) {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{UseVersioning: true, Version: v,
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade}
}

// versionInterval is the interval at which a worker reads the role of its version.
const versionInterval = time.Minute

// watchVersion logs the role of the worker's version, at its start and at each change, until the context ends. Workers
// of a deployment without a current version receive no tasks, and only this log line shows the reason.
func watchVersion(ctx context.Context, deployments client.WorkerDeploymentClient, v worker.WorkerDeploymentVersion,
	logger *slog.Logger) {
	logger = logger.With("deployment", v.DeploymentName, "build", v.BuildID)
	logged := ""
	for {
		is, err := role(ctx, deployments, v)
		switch {
		case err != nil || is == logged:
		case is == idle:
			logger.Warn(is)
		default:
			logger.Info(is)
		}
		if err == nil {
			logged = is
		}
		if !wait.For(ctx, versionInterval) {
			return
		}
	}
}

// These are the roles of a version.
const (
	idle = "no version of this worker's deployment is current, so this worker receives no tasks: " +
		"run temporal worker deployment set-current-version"
	current = "this worker's version is current"
	older   = "another version is current; this worker runs only the workflows that are pinned to its own version"
	drained = "another version is current, and no workflow is pinned to this worker's version: this worker can be removed"
)

// role returns the role of the version in its deployment.
func role(ctx context.Context, deployments client.WorkerDeploymentClient,
	v worker.WorkerDeploymentVersion) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	d, err := deployments.GetHandle(v.DeploymentName).Describe(bounded, client.WorkerDeploymentDescribeOptions{})
	if err != nil {
		return "", fmt.Errorf("describe worker deployment %s: %w", v.DeploymentName, err)
	}
	switch now := d.Info.RoutingConfig.CurrentVersion; {
	case now == nil:
		return idle, nil
	case *now == v:
		return current, nil
	}
	for _, s := range d.Info.VersionSummaries {
		if s.Version == v && s.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDrained {
			return drained, nil
		}
	}
	return older, nil
}
