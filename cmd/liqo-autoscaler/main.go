// Command liqo-autoscaler lets the Kubernetes Cluster Autoscaler grow a cluster with Liqo virtual nodes.
package main

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

// version is set by the build.
var version = cli.Unstamped

func main() { cli.Main(version, newRoot, connect.ExitCode) }
