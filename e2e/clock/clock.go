// Package clock builds Go programs whose wall clock can be wrong: in each process, time.Now adds an offset that the
// process's environment contains. The offset does not affect timers, deadlines or measured durations, because they
// use the monotonic clock.
package clock

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// variable is the environment variable with the offset of the process's clock. Default: 0.
const variable = "LIQO_AUTOSCALER_E2E_CLOCK_OFF"

// Off returns an environment variable with which the clock of a process is ahead by this time, in whole seconds. With
// a negative time the clock is behind.
func Off(by time.Duration) string { return variable + "=" + by.String() }

// reading is the line in Go's package time in which time.Now reads the clock.
const reading = "\tsec, nsec, mono := runtimeNow()\n"

// added is the content of a file that is added to Go's package time.
const added = `package time

import "syscall"

var clockOff = func() int64 {
	text, set := syscall.Getenv("` + variable + `")
	if !set {
		return 0
	}
	d, err := ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return int64(d / Second)
}()
`

// Overlay writes modified files of Go's package time into a folder. It returns the flag with which go build uses
// these files. The files depend only on the version of Go. Therefore Go's build cache also works for these builds.
func Overlay(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find Go: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("read Go's package time: %w", err)
	}
	before, after, _ := strings.Cut(string(source), reading)
	if after == "" || strings.Contains(after, reading) {
		return "", fmt.Errorf("%s does not read the clock in one line %q", original, reading)
	}
	changed, more, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "clockoff.go"),
		filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {
		original: changed, filepath.Join(filepath.Dir(original), "clockoff.go"): more}})
	if err != nil {
		return "", err
	}
	for path, text := range map[string]string{changed: before + reading + "\tsec += clockOff\n" + after, more: added,
		overlay: string(list)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write overlay of package time: %w", err)
		}
	}
	return "-overlay=" + overlay, nil
}
