// Package workertest is what the tests of several packages here need around a worker.
package workertest

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Buffer is a bytes.Buffer for several goroutines. The zero value is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// FreePorts returns addresses on this machine where nobody listens.
func FreePorts(t *testing.T, n int) []string {
	t.Helper()
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all at the end, so that they differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

// TemporalCLI finds the temporal CLI in a folder of built tools, such as ../bin, or else in PATH.
func TemporalCLI(built string) (string, error) {
	if path, err := filepath.Abs(filepath.Join(built, "temporal")); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	return "", errors.New("these tests need the temporal CLI: run make temporal")
}
