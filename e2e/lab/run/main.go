// Command run runs a command together with its own lab:
//
//	run [-providers N] [-kubernetes V] [-liqo V] [-gateways | -no-networking] COMMAND [ARG...]
//
// These environment variables describe the lab for the command: LIQO_AUTOSCALER_LAB is the lab's root, which contains
// <cluster>.kubeconfig. LAB_BIN is the folder of the binaries. LIQO_AUTOSCALER_LAB_LIQO and
// LIQO_AUTOSCALER_LAB_KUBERNETES are the full versions. LAB_GATEWAYS is set when gateways run. The program exits with
// the exit code of the command, which may be a shell. With -built, the program starts no lab and prints the folder of
// the binaries, or an empty line when they are not built. With -build, it builds them before it prints the folder.
// With -kubelet, the binaries include Kubernetes' kubelet. With -temporal, it also builds the official Temporal
// server and prints its folder in the second line.
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
	o := lab.Options{Log: log.Printf}
	flag.IntVar(&o.Providers, "providers", 2, "number of provider clusters")
	flag.StringVar(&o.KubernetesVersion, "kubernetes", "",
		"version, default $"+lab.EnvKubernetes+" or "+lab.DefaultKubernetes)
	flag.StringVar(&o.LiqoVersion, "liqo", "", "version, default $"+lab.EnvLiqo+" or "+lab.DefaultLiqo)
	flag.BoolVar(&o.Gateways, "gateways", false, "run the gateways of Liqo's networking; takes root and /dev/net/tun")
	flag.BoolVar(&o.NoNetworking, "no-networking", false, "install Liqo without its networking module")
	flag.BoolVar(&o.Kubelet, "kubelet", false, "build the kubelet too")
	temporal := flag.Bool("temporal", false, "with -build: build the official Temporal server, too")
	build := flag.Bool("build", false, "build the binaries, print their folder, and end")
	built := flag.Bool("built", false, "print the folder of the binaries when they are built, and end")
	flag.Parse()
	if *build {
		if err := buildAll(context.Background(), o, *temporal); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	if *built {
		bin, complete, err := lab.Built(o.KubernetesVersion, o.LiqoVersion)
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		if complete {
			fmt.Println(bin)
		}
		return
	}
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, o, flag.Args())
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o lab.Options, args []string) (err error) {
	l, err := lab.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LIQO_AUTOSCALER_LAB="+l.Root, "LAB_BIN="+l.Bin,
		lab.EnvKubernetes+"="+l.KubernetesVersion, lab.EnvLiqo+"="+l.LiqoVersion)
	if o.Gateways {
		cmd.Env = append(cmd.Env, "LAB_GATEWAYS=1")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	return nil
}

// buildAll builds the binaries of a lab. If the parameter `temporal` is true, it also builds the official Temporal
// server. It prints the folders.
func buildAll(ctx context.Context, o lab.Options, temporal bool) error {
	bin, err := lab.Build(ctx, o)
	if err != nil {
		return err
	}
	fmt.Println(bin)
	if !temporal {
		return nil
	}
	server, err := lab.BuildTemporal(ctx, o.Log)
	if err == nil {
		fmt.Println(server)
	}
	return err
}
