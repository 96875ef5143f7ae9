package dev

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// findCLI returns the path of the Temporal CLI next to this program, or else on PATH, or "".
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

// serverArgs returns the arguments with which the Temporal CLI starts a dev server. They equal the arguments in
// temporal-dev.sh. The last argument raises the rate at which a shard loads tasks: the default of 20 per second suits
// servers with hundreds of shards, but a dev server has one shard.
func serverArgs(host, port, uiPort, db string) []string {
	args := []string{"server", "start-dev", "--ip", host, "--port", port, "--ui-port", uiPort, "--db-filename", db,
		"--log-level", "error"}
	for _, attribute := range workflows.SearchAttributes {
		args = append(args, "--search-attribute", attribute+"=Keyword")
	}
	return append(args, "--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000")
}
