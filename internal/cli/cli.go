// Package cli is what the commands of all our programs have: their log, their version, how they end, and how they wait.
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

// Unstamped is the version of a binary that no build has given one.
const Unstamped = "dev"

// Version is that of the program. Main sets it.
var Version = Unstamped

// ReadTimeout bounds a command that is over soon.
const ReadTimeout = 30 * time.Second

// Main runs a program of that version, until it ends or is interrupted. An error is printed, and ends the program with
// the exit code that it has.
func Main(version string, root func() *cobra.Command, exitCode func(error) int) {
	Version = version
	// In a container Go collects garbage earlier when the memory is nearly used up. Without a limit nothing changes.
	_, _ = memlimit.Set()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", shorten.Lines(err.Error()))
		os.Exit(exitCode(err))
	}
}

// EndAtOnce gives Ctrl-C back its meaning where a command only reads, and so would not heed its context.
func EndAtOnce(*cobra.Command, []string) { signal.Reset(os.Interrupt, syscall.SIGTERM) }

// Parent makes a command that only has others below it; alone it prints its help. Without RunE cobra would let a
// misspelt command pass.
func Parent(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// Brief is what runs a command that is over soon: its context ends after ReadTimeout.
func Brief(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), ReadTimeout)
		defer cancel()
		return run(ctx, cmd, args)
	}
}
