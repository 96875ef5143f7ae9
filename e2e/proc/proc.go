// Package proc runs the processes of the end-to-end suites. Each process has its own log file. Package proc ends a
// process by its pid, never by its name.
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Spec describes a process to run.
type Spec struct {
	Name string // used in messages, and as the name of the log file
	Path string
	Args []string
	Env  []string // added to the environment of this process
	Dir  string
	// LogDir is the folder of the log <Name>.log. The process appends to an existing file, so that a restarted
	// process continues the same log.
	LogDir string
	// Cloneflags are the namespaces (CLONE_NEW* of clone(2)) that the process does not share with this process.
	// Default: none.
	Cloneflags uintptr
}

// Process is a process that was started. It dies when this process dies (Linux: parent death signal).
type Process struct {
	Name string
	Log  string // path of its log

	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid when done is closed
}

// Start starts a process in the background.
func Start(s Spec) (*Process, error) {
	if err := os.MkdirAll(s.LogDir, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	path := filepath.Join(s.LogDir, s.Name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.Dir
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: s.Cloneflags}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	p := &Process{Name: s.Name, Log: path, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to this process only.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s: %w", p.Name, err)
	}
	return nil
}

// Kill ends the process with SIGKILL, as a power failure would, and waits until the process has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop sends SIGTERM to the process, and kills the process if it has not ended after the time patience. It returns
// the error with which the process ended, or nil if the exit code is 0.
func (p *Process) Stop(patience time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
	return p.err
}

// ErrEnded is the error of Until when the process ends before it is ready.
var ErrEnded = errors.New("process ended")

// Until calls the function `ready` every 100 ms until ready returns nil, the process ends, or ctx ends. The error of
// Until contains the last error of ready.
func (p *Process) Until(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		last := ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s: %w, its log ends:\n%s", p.Name, errors.Join(ErrEnded, p.err), Tail(p.Log, 20))
		case <-ctx.Done():
			return fmt.Errorf("%s: not ready: %w: %w, its log ends:\n%s", p.Name, ctx.Err(), last, Tail(p.Log, 20))
		case <-tick.C:
		}
	}
}
