// Package cli has the common parts of the commands of all our programs: log, version, exit and waiting.
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

// Unstamped is the version of a binary whose build has set no version.
const Unstamped = "dev"

// Version is the version of the program. Main sets it.
var Version = Unstamped

// ReadTimeout bounds a short command.
const ReadTimeout = 30 * time.Second

// Main runs the program until it ends or is interrupted. It prints an error, and exits with the exit code of the error.
func Main(version string, root func() *cobra.Command, exitCode func(error) int) {
	Version = version
	// In a container Go then collects garbage earlier when the memory is nearly used up. Without a limit nothing changes.
	_, _ = memlimit.Set()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", shorten.Lines(err.Error()))
		os.Exit(exitCode(err))
	}
}

// EndAtOnce restores the default effect of Ctrl-C. It is for commands that only read input, and so would ignore a
// canceled context.
func EndAtOnce(*cobra.Command, []string) { signal.Reset(os.Interrupt, syscall.SIGTERM) }

// Parent returns a command that only has subcommands; without arguments it prints its help. Without RunE cobra would
// accept a misspelt subcommand.
func Parent(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// Brief wraps the function of a short command: its context ends after ReadTimeout.
func Brief(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), ReadTimeout)
		defer cancel()
		return run(ctx, cmd, args)
	}
}
