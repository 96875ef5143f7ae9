// Command externalgrpc-conformance checks any externalgrpc provider against what Cluster Autoscaler assumes.
package main

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/externalgrpc-conformance/command"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// version is stamped by the build.
var version = cli.Unstamped

func main() { cli.Main(version, command.New, func(error) int { return 1 }) }
