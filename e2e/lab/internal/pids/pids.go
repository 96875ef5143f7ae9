// Package pids manages the list of a lab's processes. The list is the file <root>/pids with lines of the form "pid
// name start-time". If the keeper of a lab has died, another process can end the lab with this list.
package pids

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Keeper is the name of the process that runs the lab. Clear ends it before all other processes, so that it cannot
// start another process.
const Keeper = "keeper"

// Entry is one process. The start time, in clock ticks since boot, distinguishes the process from a later process
// with the same pid.
type Entry struct {
	PID   int
	Name  string
	Start string
}

func file(root string) string { return filepath.Join(root, "pids") }

// Append adds a running process to the list.
func Append(root, name string, pid int) error {
	f, err := os.OpenFile(file(root), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write down process %s: %w", name, err)
	}
	start, _ := stat(pid)
	_, err = fmt.Fprintf(f, "%d %s %s\n", pid, name, start)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write down process %s: %w", name, err)
	}
	return nil
}

// List returns all processes in the list, including ended ones, in the order in which they were added. It returns
// none if the file does not exist.
func List(root string) ([]Entry, error) {
	f, err := os.Open(file(root))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list lab processes: %w", err)
	}
	defer f.Close()
	var out []Entry
	s := bufio.NewScanner(f)
	for s.Scan() {
		fields := strings.Fields(s.Text())
		if len(fields) < 3 { // the process ended before it was added
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil {
			out = append(out, Entry{PID: pid, Name: fields[1], Start: fields[2]})
		}
	}
	return out, s.Err()
}

// Find returns the process with this name that was added last, even if it has ended.
func Find(root, name string) (Entry, error) {
	all, err := List(root)
	if err != nil {
		return Entry{}, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Name == name {
			return all[i], nil
		}
	}
	return Entry{}, fmt.Errorf("find process %s: not in %s", name, file(root))
}

// Alive reports whether the process still runs. A zombie does not count as running.
func (e Entry) Alive() bool {
	start, state := stat(e.PID)
	return start == e.Start && start != "" && state != "Z"
}

// Clear kills the running processes in the list of a root, waits until they have ended, and removes the root. It does
// nothing if the root has no list, because the root then does not belong to a lab.
func Clear(root string) error {
	if _, err := os.Stat(file(root)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	all, err := List(root)
	if err != nil {
		return err
	}
	// The keeper is killed first, because it could start further processes. The processes that it has started die
	// with it.
	for _, keeper := range []bool{true, false} {
		var chosen []Entry
		for _, e := range all {
			if (e.Name == Keeper || e.Name == "runner") == keeper {
				chosen = append(chosen, e)
			}
		}
		if err := kill(chosen, 10*time.Second); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(root); err != nil {
		return fmt.Errorf("remove lab root: %w", err)
	}
	return nil
}

func kill(all []Entry, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var left []string
		for _, e := range all {
			if e.Alive() {
				left = append(left, fmt.Sprintf("%s (%d)", e.Name, e.PID))
				_ = syscall.Kill(e.PID, syscall.SIGKILL)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end lab processes: still there after %v: %s", patience, strings.Join(left, ", "))
		}
	}
}

// stat returns a process's start time and state (proc_pid_stat(5), fields 22 and 3). Both are "" if the process does
// not exist.
func stat(pid int) (start, state string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	_, rest, ok := strings.Cut(string(b), ") ")
	for ok && strings.Contains(rest, ") ") { // the name may contain parentheses
		_, rest, ok = strings.Cut(rest, ") ")
	}
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return "", ""
	}
	return fields[19], fields[0]
}
