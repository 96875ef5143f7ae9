package serve

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener whose connections are in-memory pipes, because a synctest bubble cannot use real connections.
type pipes struct {
	next chan net.Conn
	done chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.next:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client sends requests and does not read the responses. It is disconnected after ten seconds.
func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipes{make(chan net.Conn), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		served, handled := make(chan error), make(chan struct{})
		go func() {
			served <- serveHTTP(ctx, p, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				defer close(handled)
				_, _ = w.Write(make([]byte, 1<<20))
			}))
		}()
		client, server := net.Pipe()
		p.next <- server
		_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		began := time.Now()
		<-handled
		require.Equal(t, writeTimeout, time.Since(began))
		cancel()
		require.NoError(t, <-served)
		client.Close()
	})
}
