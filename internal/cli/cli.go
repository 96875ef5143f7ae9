// Package cli contains the common parts of the commands of all our programs: log, version, exit code and waiting.
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

// ReadTimeout limits the duration of a short command.
const ReadTimeout = 30 * time.Second

// Main executes the root command. A SIGINT or SIGTERM cancels the command's context. If the command fails, Main prints
// the error and exits with the code that exitCode returns for it.
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

// EndAtOnce restores the default effect of Ctrl-C, which ends the process. Commands use it that block on input and so
// would not notice a canceled context.
func EndAtOnce(*cobra.Command, []string) { signal.Reset(os.Interrupt, syscall.SIGTERM) }

// Parent returns a command that consists of subcommands; without arguments it prints its help. It sets RunE and Args,
// because cobra otherwise accepts a misspelt subcommand.
func Parent(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// Brief returns a RunE for a short command: it calls run with a context that ends after ReadTimeout.
func Brief(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), ReadTimeout)
		defer cancel()
		return run(ctx, cmd, args)
	}
}
