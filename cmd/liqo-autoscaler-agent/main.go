// Command liqo-autoscaler-agent runs in a provider's cluster: it measures free capacity and publishes offers.
package main

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler-agent/command"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// version is set by the build.
var version = cli.Unstamped

func main() { cli.Main(version, command.New, func(error) int { return 1 }) }
