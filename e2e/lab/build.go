package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// sourceDir is the folder of build.sh and lab.py: this package's.
func sourceDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("find lab scripts: no source path in this binary")
	}
	dir := filepath.Dir(file)
	if _, err := os.Stat(filepath.Join(dir, "lab.py")); err != nil {
		return "", fmt.Errorf("find lab scripts beside the sources (built with -trimpath?): %w", err)
	}
	return dir, nil
}

// build makes sure that the binaries exist and returns their folder and Liqo's version.
func build(ctx context.Context, dir string, log func(string, ...any)) (bin, tag string, err error) {
	script := filepath.Join(dir, "build.sh")
	ask := func(flag string) (string, error) {
		out, err := exec.CommandContext(ctx, script, flag).Output()
		if err != nil {
			return "", fmt.Errorf("run build.sh %s: %w", flag, err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	if bin, err = ask("--print-dir"); err != nil {
		return "", "", err
	}
	if tag, err = ask("--print-tag"); err != nil {
		return "", "", err
	}
	if _, err := os.Stat(filepath.Join(bin, ".complete")); err == nil {
		return bin, tag, nil
	}
	log("lab: building Kubernetes, Liqo and Temporal into %s (about 15 minutes, once)", bin)
	if out, err := exec.CommandContext(ctx, script, bin).CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build lab binaries: %w: %s", err, out)
	}
	return bin, tag, nil
}
