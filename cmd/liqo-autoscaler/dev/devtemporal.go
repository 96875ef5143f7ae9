package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

// devTemporal is the Temporal server that dev uses. If cmd is nil, the server was running before and keeps running
// after dev.
type devTemporal struct {
	cmd   *exec.Cmd
	ended context.Context // ends when cmd ends
}

// errNoServer means that neither the script nor a Temporal CLI exists, so that dev cannot start a server.
var errNoServer = errors.New("program temporal is not on PATH")

// temporalScript is the script in the repository's root that runs a Temporal dev server.
const temporalScript = "temporal-dev.sh"

// startTemporal starts a Temporal dev server and waits until it responds. If a Temporal server already responds at
// the address, startTemporal uses it instead. The new server runs in its own process group, so that Ctrl-C reaches
// only this process, which then stops the server.
func startTemporal(ctx context.Context, target *connect.Target, f devFlags, out io.Writer) (*devTemporal, error) {
	if answers(ctx, target) == nil {
		return &devTemporal{ended: context.Background()}, nil
	}
	host, port, err := net.SplitHostPort(target.Address)
	if err != nil {
		return nil, fmt.Errorf("--temporal-address: %w", err)
	}
	if listens(ctx, target.Address) {
		return awaitListener(ctx, target, out)
	}
	cmd, err := f.server(ctx, host, port, out)
	if err != nil {
		return nil, err
	}
	logFile, err := os.OpenFile(filepath.Join(f.dir, "temporal.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer logFile.Close()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Temporal: %w", err)
	}
	ended, end := context.WithCancel(context.Background())
	d := &devTemporal{cmd: cmd, ended: ended}
	go func() { _ = cmd.Wait(); end() }()
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	defer context.AfterFunc(ended, enough)()
	err = cli.WaitFor(waiting, 10*time.Minute, func() error { return answers(waiting, target) })
	if err != nil && ended.Err() != nil {
		return nil, fmt.Errorf("the Temporal dev server did not start (ports: --temporal-address, --temporal-ui-port): %s",
			lastLine(logFile.Name()))
	}
	if err != nil {
		d.stop()
		return nil, fmt.Errorf("the Temporal dev server does not answer at %s, see %s: %w",
			target.Address, logFile.Name(), err)
	}
	return d, nil
}

// server returns the command that runs a dev server: the script or, if the script does not exist, the Temporal CLI.
func (f devFlags) server(ctx context.Context, host, port string, out io.Writer) (*exec.Cmd, error) {
	db, script := filepath.Join(f.dir, "temporal.db"), f.temporalScript
	if script == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		script, err = installTemporal(ctx, program, out)
		if cli := findCLI(program); errors.Is(err, errNoServer) && cli != "" {
			return exec.Command(cli, serverArgs(host, port, f.uiPort, db)...), nil
		}
		if err != nil {
			return nil, err
		}
	}
	cmd := exec.Command("bash", script)
	cmd.Env = append(os.Environ(), "TEMPORAL_IP="+host, "TEMPORAL_PORT="+port, "TEMPORAL_UI_PORT="+f.uiPort,
		"TEMPORAL_DB="+db)
	return cmd, nil
}

// listenerWait is the longest time for which dev waits for a program that listens at Temporal's address but does not
// answer as Temporal.
var listenerWait = 20 * time.Second

// listens reports whether a program accepts connections at the address.
func listens(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// awaitListener waits until the program at Temporal's address answers as Temporal. The program may be a Temporal
// server that is starting or overloaded.
func awaitListener(ctx context.Context, target *connect.Target, out io.Writer) (*devTemporal, error) {
	fmt.Fprintf(out, "a program listens at %s, but does not answer as Temporal: waiting up to %s\n", target.Address,
		listenerWait)
	if err := cli.WaitFor(ctx, listenerWait, func() error { return answers(ctx, target) }); err != nil {
		return nil, fmt.Errorf("the program at %s does not answer as Temporal: stop it, or use another "+
			"--temporal-address: %w", target.Address, err)
	}
	return &devTemporal{ended: context.Background()}, nil
}

// installTemporal returns the path of the script. If the Temporal CLI is missing, installTemporal first builds the
// CLI with the script, and prints a message about this to out.
func installTemporal(ctx context.Context, program string, out io.Writer) (string, error) {
	script, err := findScript(".", filepath.Join(filepath.Dir(program), ".."))
	if err != nil {
		return "", err
	}
	install := exec.CommandContext(ctx, "bash", script, "install")
	install.Stderr = out
	if err := install.Run(); err != nil {
		return "", fmt.Errorf("install the Temporal CLI by %s: %w", script, err)
	}
	return script, nil
}

// findScript returns the path of the script in the working directory, or in the repository whose ./bin contains this
// program.
func findScript(folders ...string) (string, error) {
	for _, folder := range folders {
		path := filepath.Join(folder, temporalScript)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Temporal answers, and the %w: install the Temporal CLI "+
		"(https://docs.temporal.io/cli), give a script with --temporal-script, or start Temporal yourself "+
		"(%s, which starts one, is not in %s)", errNoServer, temporalScript, strings.Join(folders, " or "))
}

// hint returns a note for a server that was running before dev: Ctrl-C does not stop such a server. Otherwise it
// returns "".
func (d *devTemporal) hint() string {
	if d.cmd == nil {
		return ", which was running before and keeps running"
	}
	return ""
}

// reportExit prints a message when the server ends before ctx. The other parts of dev keep running, and continue their
// work when a Temporal server answers again.
func (d *devTemporal) reportExit(ctx context.Context, out io.Writer) {
	select {
	case <-d.ended.Done():
		fmt.Fprintln(out, "\nTemporal has ended; stop this command with Ctrl-C and run it again: "+
			"work in progress continues then")
	case <-ctx.Done():
	}
}

// lastLine returns the last line of a process's log file. This line contains the reason for which the process ended.
func lastLine(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return lines[len(lines)-1] + " (" + path + ")"
}

// localTemporal returns the Temporal server to use. It refuses a server on another machine if only the environment or
// a profile names this server: simulated instances would appear among the real instances there.
func localTemporal(c *connect.Common, log *slog.Logger) (*connect.Target, error) {
	target, err := c.Temporal.Open(log)
	if err != nil {
		return nil, err
	}
	if c.Temporal.Address == "" && !target.Local() {
		return nil, fmt.Errorf("TEMPORAL_ADDRESS or a profile selects Temporal at %s, but dev simulates nodes: unset it, or "+
			"give the address with --temporal-address to use it anyway", target.Address)
	}
	return target, nil
}

// answers returns an error if Temporal does not answer, or does not have the namespace.
func answers(ctx context.Context, target *connect.Target) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := target.Reach(ctx); err != nil { // fails immediately; the SDK would retry
		return err
	}
	t, err := client.DialContext(ctx, target.Options())
	if err != nil {
		return err
	}
	defer t.Close()
	_, err = t.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: target.Namespace})
	return err
}

// stop interrupts the server's process group, and kills it if it does not end.
func (d *devTemporal) stop() {
	if d.cmd == nil || d.ended.Err() != nil {
		return
	}
	pid := d.cmd.Process.Pid
	_ = syscall.Kill(-pid, syscall.SIGINT)
	select {
	case <-d.ended.Done():
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		<-d.ended.Done()
	}
}
