package connlimit_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connlimit"
)

// place is a listener on loopback with a limit of connections. Its clients have the addresses 127.0.0.x.
type place struct {
	t        *testing.T
	listener net.Listener
	accepted chan net.Conn
}

func open(t *testing.T, most int) *place {
	t.Helper()
	bare, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &place{t: t, listener: connlimit.Listen(bare, most), accepted: make(chan net.Conn, 100)}
	t.Cleanup(func() { _ = bare.Close() })
	go func() {
		for {
			c, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.accepted <- c
		}
	}()
	return p
}

// pair holds the client's end and the server's end of a connection.
type pair struct{ client, server net.Conn }

func (p *place) dial(from string) net.Conn {
	p.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
	c, err := d.DialContext(p.t.Context(), "tcp", p.listener.Addr().String())
	require.NoError(p.t, err)
	require.NoError(p.t, c.SetDeadline(time.Now().Add(time.Minute)))
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// enter connects from an address, and waits until the server has accepted the connection.
func (p *place) enter(from string) pair {
	p.t.Helper()
	client := p.dial(from)
	return pair{client, <-p.accepted}
}

// stays checks that both ends of the connection are open.
func (p pair) stays(t *testing.T, why string) {
	t.Helper()
	_, err := p.server.Write([]byte{1})
	require.NoError(t, err, why)
	_, err = p.client.Read(make([]byte, 1))
	require.NoError(t, err, why)
}

// gone checks that the server has closed the connection.
func gone(t *testing.T, client net.Conn, why string) {
	t.Helper()
	_, err := client.Read(make([]byte, 1))
	require.Error(t, err, why)
	timeout, ok := err.(net.Error)
	require.False(t, ok && timeout.Timeout(), why)
}

// TestAddressWithManyConnectionsLosesItsOwn checks that an address with many connections loses its own connections,
// beginning with the oldest one.
func TestAddressWithManyConnectionsLosesItsOwn(t *testing.T) {
	p := open(t, 4)
	quiet := p.enter("127.0.0.2")
	var strange []pair
	for range 3 {
		strange = append(strange, p.enter("127.0.0.3"))
	}
	for n := range 20 {
		strange = append(strange, p.enter("127.0.0.3"))
		gone(t, strange[n].client, "its oldest")
	}
	quiet.stays(t, "the only one of its address")
	late := p.enter("127.0.0.4")
	late.stays(t, "a new client gets in")
	gone(t, strange[20].client, "for which a place of the stranger is taken")
	strange[22].stays(t, "its newest")
}

// TestOldestConnectionIsClosedAmongEqualAddresses checks that the oldest connection is closed if several addresses
// have the same number of connections.
func TestOldestConnectionIsClosedAmongEqualAddresses(t *testing.T) {
	p := open(t, 2)
	first, second := p.enter("127.0.0.2"), p.enter("127.0.0.3")
	p.enter("127.0.0.4").stays(t, "the third")
	gone(t, first.client, "the first")
	second.stays(t, "the second")
}

// TestKnownClientsStay checks that the connections of known clients stay open, even if an unknown client connects
// from the same address. If known clients use the whole limit, each new connection is closed until a known client
// disconnects.
func TestKnownClientsStay(t *testing.T) {
	p := open(t, 3)
	known := p.enter("127.0.0.3")
	connlimit.Keep(known.server)
	connlimit.Keep(known.server) // a second call has no effect
	for range 10 {
		p.enter("127.0.0.3")
	}
	known.stays(t, "its client is known")
	for range 2 {
		connlimit.Keep(p.enter("127.0.0.5").server)
	}
	gone(t, p.dial("127.0.0.6"), "no place is left")
	require.NoError(t, known.server.Close())
	_ = known.server.Close() // a second Close has no effect
	p.enter("127.0.0.6").stays(t, "a place was freed")
	p.enter("127.0.0.7").stays(t, "in place of the stranger before")
}

// TestHandlerMarksItsConnection checks that an HTTP handler can mark the client of its request as known, with TLS and
// without TLS.
func TestHandlerMarksItsConnection(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){"plain": (*httptest.Server).Start,
		"TLS": (*httptest.Server).StartTLS} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" {
					connlimit.KeepFrom(r.Context())
				}
			}))
			server.Listener = connlimit.Listen(server.Listener, 1)
			server.Config.ConnContext = connlimit.WithConn
			start(server)
			defer server.Close()
			ask := func(known bool) {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				require.NoError(t, err)
				if known {
					r.Header.Set("Authorization", "a")
				}
				answer, err := server.Client().Do(r)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
			}
			stranger := func() net.Conn {
				c, err := net.Dial("tcp", server.Listener.Addr().String())
				require.NoError(t, err)
				return c
			}
			ask(false)
			stranger().Close()
			ask(true)
			gone(t, stranger(), "the place is that of a known client")
			ask(true)
		})
	}
}
