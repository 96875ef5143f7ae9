// Package workertest is what the tests of several packages here need around a worker.
package workertest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
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

// FreePorts returns addresses on this machine where nobody listens. Their ports are below those that Linux gives to whoever
// asks for any, as tests of other packages do all the time: until they are used only another FreePorts may get them.
func FreePorts(t *testing.T, n int) []string {
	t.Helper()
	var addresses []string
	for tries := 0; len(addresses) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err != nil && tries < 1000 {
			continue
		}
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
