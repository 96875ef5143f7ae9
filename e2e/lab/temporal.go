package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// temporalServerVersion is the newest version of the Temporal server that can be built with the Go version of our
// go.mod. The server has another module than the temporal CLI, whose dev server may have another version.
const temporalServerVersion = "v1.32.0"

// BuildTemporal builds the Temporal server and its schema tool, unless they exist. It returns their folder in the
// user's cache. The programs are called server and sql. The first build takes several minutes.
func BuildTemporal(ctx context.Context, log func(string, ...any)) (string, error) {
	sources, err := sourceDir()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find folder for the Temporal server: %w", err)
	}
	bin := filepath.Join(cache, "liqo-autoscaler", "temporal-"+temporalServerVersion)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("make folder for the Temporal server: %w", err)
	}
	lock, err := flock(ctx, filepath.Join(bin, ".lock"), func() { log("lab: waiting for another build of %s", bin) })
	if err != nil {
		return "", err
	}
	defer lock.Close()
	return bin, part{source: "go.temporal.io/server@" + temporalServerVersion,
		module:   filepath.Join("temporal", temporalServerVersion),
		packages: []string{"go.temporal.io/server/cmd/server", "go.temporal.io/server/cmd/tools/sql"},
		names:    []string{"server", "sql"},
		env:      []string{"CGO_ENABLED=0"}, // as in the official image
	}.build(ctx, sources, bin, log)
}
