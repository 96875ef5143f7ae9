package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/keep"
)

// keeper is the process that runs the lab. It runs as long as its standard input is open. The standard input closes
// when this process, the owner, ends.
type keeper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	up    chan struct{} // closed when the lab is up
	done  chan struct{} // closed when the keeper has ended
	said  string        // the error message in the keeper's output; valid when done is closed
	err   error         // the error with which the keeper ended; valid when done is closed
}

// buildKeeper compiles the keeper from the folder sources, and returns the path of the program. This takes only a
// moment if nothing has changed. The caller must hold the slot's lock.
func buildKeeper(ctx context.Context, sources string, slot int) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("build lab keeper: %w", err)
	}
	out := filepath.Join(cache, "liqo-autoscaler", "lab-keeper"+suffix(slot))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./keeper")
	cmd.Dir = sources
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build lab keeper: %w: %s", err, said)
	}
	return out, nil
}

// startKeeper starts the keeper of a lab. The keeper inherits the open file of the lock, so that no other lab can
// take the lock until this lab has ended.
func startKeeper(path string, config keep.Config, l *lock, log func(string, ...any)) (*keeper, error) {
	fail := func(err error) (*keeper, error) { return nil, fmt.Errorf("start lab keeper: %w", err) }
	line, err := json.Marshal(config)
	if err != nil {
		return fail(err)
	}
	k := &keeper{cmd: exec.Command(path), up: make(chan struct{}), done: make(chan struct{})}
	k.cmd.Stderr = os.Stderr // for panics
	k.cmd.ExtraFiles = []*os.File{l.file}
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // only the owner receives the terminal's Ctrl-C
	if k.stdin, err = k.cmd.StdinPipe(); err != nil {
		return fail(err)
	}
	stdout, err := k.cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := k.cmd.Start(); err != nil {
		return fail(err)
	}
	go k.listen(stdout, log)
	if _, err := k.stdin.Write(append(line, '\n')); err != nil {
		return fail(errors.Join(err, k.end(time.Second)))
	}
	return k, nil
}

// listen reads the keeper's output until the keeper has ended.
func (k *keeper) listen(stdout io.Reader, log func(string, ...any)) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s keep.Said
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			continue
		}
		switch {
		case s.Up:
			close(k.up)
		case s.Error != "":
			k.said = s.Error
		case !isClosed(k.up): // a test must not write to its log when it has ended
			log("lab: %s", s.Log)
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
	k.err = k.cmd.Wait()
	close(k.done)
}

// await waits until the lab is up.
func (k *keeper) await(ctx context.Context) error {
	select {
	case <-k.up:
		return nil
	case <-k.done:
		return k.failure()
	case <-ctx.Done():
		return fmt.Errorf("wait for the lab: %w", ctx.Err())
	}
}

// end makes the keeper end the lab, and waits until the keeper has ended. It returns an error when the keeper had
// already ended, fails, or takes longer than patience.
func (k *keeper) end(patience time.Duration) error {
	early := isClosed(k.done)
	_ = k.stdin.Close()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-k.done:
	case <-timer.C:
		_ = k.cmd.Process.Kill()
		<-k.done
		return fmt.Errorf("end the lab: its keeper did not within %v", patience)
	}
	if early || k.err != nil {
		return k.failure()
	}
	return nil
}

func (k *keeper) failure() error {
	if k.said != "" {
		return errors.New(k.said)
	}
	return fmt.Errorf("the lab's keeper has ended early: %w", k.err)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
