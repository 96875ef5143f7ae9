// Command externalgrpc-conformance tests any externalgrpc provider against the assumptions of Cluster Autoscaler.
package main

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/externalgrpc-conformance/command"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// version is set by the build.
var version = cli.Unstamped

func main() { cli.Main(version, command.New, func(error) int { return 1 }) }
