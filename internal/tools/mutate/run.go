package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// collect returns the sites of the packages in the folders.
func collect(folders []string) ([]site, error) {
	var paths []string
	for _, folder := range folders {
		files, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if path := filepath.Join(folder, f.Name()); readable(path) {
				paths = append(paths, path)
			}
		}
	}
	e, sources := enums{}, map[string][]byte{}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		e.add(f)
		sources[path] = source
	}
	var all []site
	for _, path := range paths {
		sites, err := sitesOf(path, sources[path], e)
		if err != nil {
			return nil, err
		}
		all = append(all, sites...)
	}
	return all, nil
}

// testsOf returns, for each folder, the folders whose tests may detect a change in it: first the folder itself, and
// then those folders of the parameter tests that depend on it.
func testsOf(ctx context.Context, folders, tests []string) (map[string][]string, error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-m").Output()
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, folder := range folders {
		found[folder] = []string{folder}
	}
	for _, test := range tests {
		deps, err := exec.CommandContext(ctx, "go", "list", "-test", "-deps", "./"+test).Output()
		if err != nil {
			return nil, fmt.Errorf("go list ./%s: %w", test, err)
		}
		imports := strings.Fields(string(deps))
		for _, folder := range folders {
			path := strings.TrimSpace(string(module)) + "/" + folder
			if test != folder && slices.Contains(imports, path) {
				found[folder] = append(found[folder], test)
			}
		}
	}
	return found, nil
}

// result is the result of the tests on a changed source.
type result int

const (
	unbuilt  result = iota // the changed source does not compile
	killed                 // a test failed
	survived               // all tests passed
)

// runner runs tests on code with one change. Each worker has its own runner.
type runner struct {
	dir     string
	timeout time.Duration
	tests   map[string][]string
}

// apply returns the source with the change.
func (s site) apply(source []byte) []byte {
	return slices.Concat(source[:s.from], []byte(s.with), source[s.to:])
}

// try runs the tests of the changed package. If they pass, it runs the tests of the packages that depend on it.
func (r *runner) try(ctx context.Context, s site) (result, error) {
	source, err := os.ReadFile(s.file)
	if err != nil {
		return 0, err
	}
	original, err := filepath.Abs(s.file)
	if err != nil {
		return 0, err
	}
	changed, overlay := filepath.Join(r.dir, "changed.go"), filepath.Join(r.dir, "overlay.json")
	if err := os.WriteFile(changed, s.apply(source), 0o600); err != nil {
		return 0, err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return 0, err
	}
	for _, test := range r.tests[filepath.Dir(s.file)] {
		if res, _ := r.test(ctx, overlay, test); res != survived {
			return res, ctx.Err()
		}
	}
	return survived, ctx.Err()
}

var buildFailed = regexp.MustCompile(`(?m)^FAIL\s.*\[(build|setup) failed\]`)

// test runs the tests of one folder.
func (r *runner) test(ctx context.Context, overlay, folder string) (result, string) {
	// go test applies the timeout to the tests. The longer limit of ctx also ends processes that hang before or after
	// the tests.
	ctx, cancel := context.WithTimeout(ctx, r.timeout+5*time.Minute)
	defer cancel()
	// Without debug information (-ldflags) the linker needs half the time.
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-ldflags=-s -w", "-timeout", r.timeout.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+folder)...)
	// TEMPORAL_DEBUG disables the SDK's detection of deadlocks, which would fail tests on a busy machine.
	cmd.Env = append(os.Environ(), "TEMPORAL_DEBUG=1")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return survived, string(out)
	case buildFailed.Match(out):
		return unbuilt, string(out)
	default:
		return killed, string(out)
	}
}
