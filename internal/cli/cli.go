// Package cli contains the common parts of the commands of all our programs: log, version, exit code and functions
// that wait.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Unstamped is the version of a program whose build has not set a version.
const Unstamped = "dev"

// Version is the version of the program. The function Main sets it.
var Version = Unstamped

// ReadTimeout is the maximum duration of a short command.
const ReadTimeout = 30 * time.Second

// Main executes the root command. A SIGINT or SIGTERM cancels the command's context. If the command fails, Main
// prints the error and exits with the code that exitCode returns for this error.
func Main(version string, root func() *cobra.Command, exitCode func(error) int) {
	Version = version
	// Set passes the container's memory limit to the Go runtime, which then collects garbage earlier when the memory is
	// nearly used up. Without a limit Set changes nothing.
	_, _ = memlimit.Set()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cmd := root()
	AsPlugin(cmd, os.Args[0])
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", shorten.Lines(err.Error()))
		os.Exit(exitCode(err))
	}
}

// EndAtOnce restores the default effect of Ctrl-C, which ends the process immediately. It is for commands that wait
// for input, because they would not notice that their context is canceled.
func EndAtOnce(*cobra.Command, []string) { signal.Reset(os.Interrupt, syscall.SIGTERM) }

// Parent returns a command that only has subcommands. Without arguments the command prints its help. Parent sets RunE
// and Args, because cobra would otherwise accept a misspelt subcommand.
func Parent(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// Brief returns a function for the field RunE of a short command. The function calls run with a context that ends
// after ReadTimeout.
func Brief(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), ReadTimeout)
		defer cancel()
		return run(ctx, cmd, args)
	}
}
