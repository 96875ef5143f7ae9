// Package clock builds Go programs whose wall clock can be off: time.Now of each process adds what its environment
// says. What measures durations does not change: monotonic readings, timers and deadlines.
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

// variable is how a process learns how far its clock is off. Default: not at all.
const variable = "LIQO_AUTOSCALER_E2E_CLOCK_OFF"

// Off is for the environment of a process: its clock is ahead by so much, in whole seconds, or behind.
func Off(by time.Duration) string { return variable + "=" + by.String() }

// reading is the one line of package time that time.Now reads the clock in.
const reading = "\tsec, nsec, mono := runtimeNow()\n"

// added is a further file of package time.
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

// Overlay writes into a folder what go build must read in place of Go's own package time, and returns the flag that
// says so. What it writes depends on the version of Go alone, so what is built with it stays in Go's cache.
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
