package hub

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// delayed returns the address of a proxy for a server. The proxy adds rtt to each round trip, one half in each
// direction. It does not reduce the throughput.
func delayed(t *testing.T, server string, rtt time.Duration) string {
	t.Helper()
	if rtt == 0 {
		return server
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			go later(upstream, client, rtt/2)
			go later(client, upstream, rtt/2)
		}
	}()
	return listener.Addr().String()
}

// piece holds the bytes of one read and the time at which the proxy writes them.
type piece struct {
	bytes []byte
	due   time.Time
}

// later copies bytes from one connection to the other and delays each byte.
func later(to, from net.Conn, delay time.Duration) {
	defer to.Close()
	pieces := make(chan piece, 4096)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				pieces <- piece{buffer[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		<-time.After(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	from.Close()
	for range pieces { // until its reader has ended
	}
}

// Through the proxy, a round trip takes at least the time with which the proxy was started.
func TestProxyAddsTheRoundTrip(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
		}
	}()
	c, err := net.Dial("tcp", delayed(t, listener.Addr().String(), 100*time.Millisecond))
	require.NoError(t, err)
	defer c.Close()
	began := time.Now()
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
}
