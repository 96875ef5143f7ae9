package room

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// prefix is the first part of the name of a room's cgroup. The second part is the pid of the program that made the
// room.
const prefix = "liqo-autoscaler-room-"

// hierarchy is a cgroup hierarchy of the machine.
type hierarchy struct {
	mount   string // path at which the hierarchy is mounted
	options string // mount options, empty for version 2
	own     string // folder of the cgroup of this process
}

func (h hierarchy) v2() bool { return h.options == "" }

// hierarchies returns the mounted hierarchies. Each contains the cgroup of this process in this hierarchy.
func hierarchies() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("read cgroups of this process: %w", err)
	}
	var out []hierarchy
	for line := range strings.Lines(string(mounts)) {
		h, root, ok := parseMount(line)
		if !ok {
			continue
		}
		path := cgroupOf(string(groups), h)
		if root != "/" { // a container sees only a part of the hierarchy
			path = strings.TrimPrefix(path, root)
		}
		h.own = filepath.Join(h.mount, path)
		if exists(h.own) {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("find cgroups: none is mounted")
	}
	return out, nil
}

// parseMount parses a line of mountinfo (proc(5)). The fields of the line are: ID, parent, device, root, mount point,
// options, …, "-", type, source, options of the file system.
func parseMount(line string) (h hierarchy, root string, ok bool) {
	head, tail, found := strings.Cut(strings.TrimSpace(line), " - ")
	left, right := strings.Fields(head), strings.Fields(tail)
	if !found || len(left) < 5 || len(right) < 3 {
		return h, "", false
	}
	h.mount = left[4]
	switch right[0] {
	case "cgroup2":
	case "cgroup":
		options := slices.DeleteFunc(strings.Split(right[2], ","), func(o string) bool { return o == "rw" || o == "ro" })
		if len(options) == 1 && strings.HasPrefix(options[0], "name=") {
			options = append([]string{"none"}, options...)
		}
		h.options = strings.Join(options, ",")
	default:
		return h, "", false
	}
	return h, left[3], true
}

// cgroupOf returns the path of a process's cgroup in the hierarchy h. groups is the content of the file
// /proc/PID/cgroup of the process. The lines of this file have the form ID:controllers:path (cgroups(7)). Without a
// line for h, the path is /.
func cgroupOf(groups string, h hierarchy) string {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && fields[1] == strings.TrimPrefix(h.options, "none,") {
			return fields[2]
		}
	}
	return "/"
}

// within moves this process into the room's cgroup in each hierarchy, calls f, and moves the process back.
func within(all []hierarchy, name string, f func() error) (err error) {
	for _, h := range all {
		if err := h.makeGroup(name); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		defer func() { err = errors.Join(err, join(h.own)) }()
		if err := join(filepath.Join(h.own, name)); err != nil {
			return err
		}
	}
	return f()
}

// makeGroup makes a cgroup below the cgroup of this process. A new cgroup of the controller cpuset has no CPUs and
// memory nodes, and accepts processes only when it has some. Therefore makeGroup copies the values of the cgroup of
// this process.
func (h hierarchy) makeGroup(name string) error {
	dir := filepath.Join(h.own, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(h.own, file))
		if h.v2() || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func join(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		return fmt.Errorf("join cgroup: %w", err)
	}
	return nil
}

// clearLeftovers removes cgroups of earlier rooms that remain because the program was killed.
func clearLeftovers(all []hierarchy) error {
	for _, h := range all {
		dirs, err := filepath.Glob(filepath.Join(h.own, prefix+"*"))
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			pid := strings.TrimPrefix(filepath.Base(dir), prefix)
			if !exists(filepath.Join("/proc", pid)) {
				if err := removeGroup(dir); err != nil {
					return fmt.Errorf("remove the cgroup of an earlier room: %w", err)
				}
			}
		}
	}
	return nil
}

// removeGroup removes a cgroup and the cgroups below it, the deepest first. The kernel refuses to remove a cgroup
// while a process in it is ending. Therefore removeGroup tries repeatedly for ten seconds.
func removeGroup(dir string) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-again.C {
		err := filepath.WalkDir(dir, removeDeepest)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !exists(dir) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup %s: %w", dir, errors.Join(err, unix.EBUSY))
		}
	}
}

// removeDeepest is a function for WalkDir that removes a folder if it contains no other folder. The parent folder can
// be removed in the next call of WalkDir.
func removeDeepest(path string, d fs.DirEntry, err error) error {
	if err != nil || !d.IsDir() {
		return err
	}
	if err := unix.Rmdir(path); err == nil {
		return fs.SkipDir
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
