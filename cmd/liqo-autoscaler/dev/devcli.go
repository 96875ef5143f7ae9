package dev

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// findCLI returns the Temporal CLI next to this program, or the one on PATH; empty without a CLI.
func findCLI(program string) string {
	beside := filepath.Join(filepath.Dir(program), "temporal")
	if info, err := os.Stat(beside); err == nil && info.Mode()&0o111 != 0 {
		return beside
	}
	found, err := exec.LookPath("temporal")
	if err != nil {
		return ""
	}
	return found
}

// serverArgs are the arguments of the CLI for a dev server, as temporal-dev.sh has them. By default a shard searches
// for tasks at most 20 times a second, a bound for a server with hundreds of shards. A dev server has one shard.
func serverArgs(host, port, uiPort, db string) []string {
	args := []string{"server", "start-dev", "--ip", host, "--port", port, "--ui-port", uiPort, "--db-filename", db,
		"--log-level", "error"}
	for _, attribute := range workflows.SearchAttributes {
		args = append(args, "--search-attribute", attribute+"=Keyword")
	}
	return append(args, "--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000")
}
