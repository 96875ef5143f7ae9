// Command run runs a command beside a lab of its own: run [-providers N] COMMAND [ARG...]. The command finds the lab by
// LIQO_AUTOSCALER_LAB (its root, with <cluster>.kubeconfig in it) and LAB_BIN (the binaries); its exit code is ours.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

func main() {
	providers := flag.Int("providers", 2, "number of provider clusters")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *providers, flag.Args())
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, providers int, args []string) (err error) {
	l, err := lab.Start(ctx, lab.Options{Providers: providers, Log: log.Printf})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LIQO_AUTOSCALER_LAB="+l.Root, "LAB_BIN="+l.Bin)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	return nil
}
