package parts

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
)

// These constants name the environment variables that Temporal's Worker Controller sets in the Pods of workers.
const (
	EnvDeployment = "TEMPORAL_DEPLOYMENT_NAME"
	EnvBuild      = "TEMPORAL_WORKER_BUILD_ID"
)

// DeploymentVersion holds the flags for the version of the workers.
type DeploymentVersion struct{ deployment, build string }

// Register adds the flags.
func (f *DeploymentVersion) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.deployment, "deployment-name", os.Getenv(EnvDeployment),
		"Temporal's Worker Deployment of this installation; it enables versioning of workers ($"+EnvDeployment+")")
	cmd.Flags().StringVar(&f.build, "build-id", os.Getenv(EnvBuild),
		"version of the worker in its deployment ($"+EnvBuild+"; default: the version of this binary)")
}

// Of returns the version that the flags specify, or an error if it is not valid. Without the flags it returns the
// zero value.
func (f *DeploymentVersion) Of() (v sdkworker.WorkerDeploymentVersion, err error) {
	if f.deployment == "" && f.build == "" {
		return v, nil
	}
	v.DeploymentName, v.BuildID = f.deployment, f.build
	if v.BuildID == "" && cli.Version != cli.Unstamped {
		v.BuildID = cli.Version
	}
	if v.DeploymentName != "" && v.BuildID == "" {
		return v, errors.New("this binary was built without a version: give --build-id")
	}
	return v, worker.CheckVersion(v)
}

// RegisterSearchAttributes adds the flag that enables search attributes.
func RegisterSearchAttributes(cmd *cobra.Command, set *bool) {
	cmd.Flags().BoolVar(set, "search-attributes", true,
		"set search attributes on workflows; the worker waits until temporal setup has registered them")
}
