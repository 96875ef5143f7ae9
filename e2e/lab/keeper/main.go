// Command keeper runs one lab. Only package lab builds and starts it. It reads a keep.Config as one line of JSON from
// standard input, and reports its progress on standard output. It ends the lab when its standard input closes,
// because the owner has closed it or has died. The processes that the keeper starts die with it. With the argument
// "contain", the program is the first process of a container.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/keep"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == keep.ContainArg {
		fmt.Fprintln(os.Stderr, keep.Contain(os.Args[2:]))
		os.Exit(1)
	}
	signal.Ignore(syscall.SIGPIPE) // the owner may have died and read no output, but the keeper must still end the lab
	syscall.CloseOnExec(3)         // the lab lock: this process holds it until it ends, its children do not
	say := speaker(os.Stdout)
	if err := run(os.Stdin, say); err != nil {
		say(keep.Said{Error: err.Error()})
		os.Exit(1)
	}
}

func run(stdin io.Reader, say func(keep.Said)) error {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read config from standard input: %w", err)
	}
	var config keep.Config
	if err := json.Unmarshal(line, &config); err != nil {
		return fmt.Errorf("read config from standard input: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	return keep.Run(ctx, config,
		func() { say(keep.Said{Up: true}) },
		func(format string, args ...any) { say(keep.Said{Log: fmt.Sprintf(format, args...)}) })
}

// speaker returns a function that writes a line of JSON. The function ignores errors, because the reader may have
// ended.
func speaker(w io.Writer) func(keep.Said) {
	var mu sync.Mutex
	encoder := json.NewEncoder(w)
	return func(s keep.Said) {
		mu.Lock()
		defer mu.Unlock()
		_ = encoder.Encode(s)
	}
}
