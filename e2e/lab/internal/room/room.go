// Package room runs a command in a room: in namespaces and cgroups of its own. There a kubelet with containerd and
// runc works as on a separate machine. The kernel ends every process in the room when the command ends or the caller
// is killed.
package room

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// InsideArg is the first argument of the program when the program runs as the first process of a room, see Inside.
const InsideArg = "inside"

// EnvInside is an environment variable that is set for a command in a room.
const EnvInside = "LIQO_AUTOSCALER_LAB_ROOM"

const namespaces = unix.CLONE_NEWCGROUP | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC

// Run runs the command in a room. After the command it checks that the room has left nothing behind. If processes,
// mounts, interfaces or cgroups are left, it returns an error that wraps ErrLeft and lists them. When ctx ends, Run
// kills the command. If the exit code of the command is not 0, Run returns an *exec.ExitError. To make the room, Run
// starts its own program a second time, with InsideArg as the first argument.
func Run(ctx context.Context, args []string) error {
	if err := Check(); err != nil {
		return err
	}
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	if err := clearLeftovers(hierarchies); err != nil {
		return err
	}
	before, err := machine()
	if err != nil {
		return err
	}
	name := prefix + strconv.Itoa(os.Getpid())
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{InsideArg, name}, args...)...)
	cmd.Env = append(os.Environ(), EnvInside+"="+name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	// The root of the room's cgroup namespace is the cgroup in which the first process starts.
	err = within(hierarchies, name, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	return errors.Join(err, nothingLeft(hierarchies, name, before))
}

// Inside does the work of the first process of a room. It makes the room's mounts and network, runs the command,
// collects orphaned processes, and returns the command's exit code. args contains the room's name and the command.
func Inside(args []string) (code int, err error) {
	if err := furnish(args[0]); err != nil {
		return 1, fmt.Errorf("make room: %w", err)
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return 1, fmt.Errorf("run %s in a room: %w", args[1], err)
	}
	command, err := os.StartProcess(path, args[1:], &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 1, fmt.Errorf("run %s in a room: %w", args[1], err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for %s: %w", args[1], err)
		case pid == command.Pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case pid == command.Pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
