package room

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrLeft means that a room has left something on the machine.
var ErrLeft = errors.New("the room has left something behind")

// machine returns the mounts and the network interfaces of this machine. They are compared before and after a room.
func machine() (map[string]bool, error) {
	seen := map[string]bool{}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			seen["mount "+fields[4]] = true
		}
	}
	interfaces, err := filepath.Glob("/sys/class/net/*")
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		seen["interface "+filepath.Base(i)] = true
	}
	return seen, nil
}

// nothingLeft removes the room's cgroups. It returns an error that lists the processes, cgroups, mounts and
// interfaces that the room has left behind.
func nothingLeft(all []hierarchy, name string, before map[string]bool) error {
	var left []string
	for _, h := range all {
		if err := removeGroup(filepath.Join(h.own, name)); err != nil {
			left = append(left, err.Error())
		}
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return err
	}
	for _, path := range groups {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), name) {
			left = append(left, "process "+filepath.Base(filepath.Dir(path)))
		}
	}
	after, err := machine()
	if err != nil {
		return err
	}
	for _, what := range slices.Sorted(maps.Keys(after)) {
		if !before[what] {
			left = append(left, what)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrLeft, strings.Join(left, ", "))
}
