// Command box is the only program in the image of the containers of the suite "pods". It is also the first process of
// their pods:
//
//	box pause                   waits for SIGTERM, and collects orphans
//	box serve ADDRESS FOLDER    serves the folder's files over HTTP
//	box write FILE TEXT         writes the file
//	box show FILE...            prints the files, and waits for SIGTERM
//	box grace DURATION          at SIGTERM prints "TERM", waits that long, prints "bye", and ends
//	box stubborn                ignores SIGTERM
//	box eat                     takes memory until the kernel kills it
//	box exit CODE               ends with the exit code
//
// Each mode first prints "up".
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	fmt.Println("up")
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// modes contains, for each value of the program's first argument, the function to call and the number of further
// arguments. -1 means any number.
var modes = map[string]struct {
	args int
	run  func(args []string, term <-chan os.Signal) error
}{
	"pause": {0, pause}, "serve": {2, serve}, "write": {2, write}, "show": {-1, show}, "grace": {1, grace},
	"stubborn": {0, func([]string, <-chan os.Signal) error { select {} }}, "eat": {0, eat}, "exit": {1, exit},
}

func run(args []string) error {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	if len(args) == 0 {
		return errors.New("no mode")
	}
	mode, known := modes[args[0]]
	if !known || mode.args >= 0 && mode.args != len(args)-1 {
		return fmt.Errorf("no such mode: %q", args)
	}
	return mode.run(args[1:], term)
}

func serve(args []string, term <-chan os.Signal) error {
	server := &http.Server{Addr: args[0], Handler: http.FileServer(http.Dir(args[1])), ReadHeaderTimeout: time.Second}
	go func() {
		<-term
		_ = server.Close()
	}()
	return server.ListenAndServe()
}

func write(args []string, _ <-chan os.Signal) error {
	return os.WriteFile(args[0], []byte(args[1]), 0o644)
}

func show(args []string, term <-chan os.Signal) error {
	for _, path := range args {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", path, text)
	}
	<-term
	return nil
}

func grace(args []string, term <-chan os.Signal) error {
	needs, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	<-term
	fmt.Println("TERM")
	<-time.After(needs)
	fmt.Println("bye")
	return nil
}

func eat([]string, <-chan os.Signal) error {
	var eaten bytes.Buffer
	for {
		eaten.Write(bytes.Repeat([]byte{1}, 1<<20))
	}
}

func exit(args []string, _ <-chan os.Signal) error {
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

// pause collects the pod's orphaned processes until SIGTERM.
func pause(_ []string, term <-chan os.Signal) error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-term:
			return nil
		case <-children:
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
					break
				}
			}
		}
	}
}
