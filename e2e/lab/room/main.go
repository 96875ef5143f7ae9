// Command room runs a command as root in its own namespaces and cgroups, so that kubelets, containerd and runc work as
// on a separate machine:
//
//	room COMMAND [ARG...]
//	room -check
//
// The command sees the machine's files. Its changes in /run, /var and /etc are removed when the command ends. The
// only network is loopback. The program exits with the exit code of the command. When it exits, no process, mount,
// network interface or cgroup of the room exists any more. If one is left, the exit code is 1 and the message lists
// it. With -check, the program runs no command. It prints the features that a room needs and that are missing on this
// machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/room"
)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) > 1 && args[0] == room.InsideArg:
		code, err := room.Inside(args[1:])
		end(code, err)
	case len(args) == 1 && args[0] == "-check":
		end(0, room.Check())
	case len(args) == 0 || args[0][0] == '-':
		fmt.Fprintln(os.Stderr, "usage: room COMMAND [ARG...], or room -check")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := room.Run(ctx, args)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && !errors.Is(err, room.ErrLeft) {
		end(exit.ExitCode(), nil)
	}
	end(0, err)
}

// end exits with the code, or with 1 and the error's text.
func end(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}
