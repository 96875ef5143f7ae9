package worker_test

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
)

// throttle returns an address that forwards connections to another address. After a call of hang, the connections stay
// open and transfer nothing.
func throttle(t *testing.T, to string) (address string, hang func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var hangs sync.RWMutex
	pass := func(from, to net.Conn) {
		defer to.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			hangs.RLock()
			_, failed := to.Write(buffer[:n])
			hangs.RUnlock()
			if err != nil || failed != nil {
				return
			}
		}
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_, _ = io.WriteString(in, err.Error())
				_ = in.Close()
				continue
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
	return listener.Addr().String(), func() {
		hangs.Lock()
		t.Cleanup(hangs.Unlock)
	}
}

// A worker ends within the 30 s of its chart, even when Temporal does not answer. In this case the worker of each lane
// (task queue) takes ten seconds.
func TestWorkerStopsInTimeWhileTemporalHangs(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	address, hang := throttle(t, devServer)
	c, err := client.NewLazyClient(client.Options{HostPort: address, Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	o, err := options(c, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(t, err)
	started, ended := make(chan struct{}), make(chan error)
	o.StopTimeout, o.Started = 2*time.Second, func() { close(started) }
	ctx, cancel := context.WithCancel(s.ctx)
	go func() { ended <- worker.Run(ctx, o) }()
	<-started
	hang()
	began := time.Now()
	cancel()
	require.NoError(t, <-ended)
	require.Less(t, time.Since(began), 25*time.Second)
}
