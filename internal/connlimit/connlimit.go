// Package connlimit bounds the number of connections of a listener. This bounds the memory that unknown clients can
// use, and known clients can always connect. A client is known after the process has called Keep for the client's
// connection.
package connlimit

import (
	"context"
	"net"
	"sync"
)

// Listen returns a listener with at most the given number of open connections. When this number is reached, the
// listener closes one open connection for each new connection. It selects the address with the most connections of
// unknown clients, and closes the oldest of these connections. So an address that opens many connections loses its
// own connections first. If the clients of all open connections are known, the listener closes the new connection.
func Listen(listener net.Listener, most int) net.Listener {
	return &limited{Listener: listener, most: most, open: map[*conn]bool{}, unknown: map[string]int{}}
}

// Keep marks the client of the connection as known. The listener then never closes this connection because of a new
// one. Keep ignores a connection that is not from a listener of this package.
func Keep(of net.Conn) {
	for {
		switch c := of.(type) {
		case *conn:
			c.keep()
			return
		case interface{ NetConn() net.Conn }: // *tls.Conn
			of = c.NetConn()
		default:
			return
		}
	}
}

type key struct{}

// WithConn returns a context that contains the connection. An http.Server whose handlers call KeepFrom needs WithConn
// as its ConnContext.
func WithConn(ctx context.Context, of net.Conn) context.Context {
	return context.WithValue(ctx, key{}, of)
}

// KeepFrom calls Keep with the connection of a request. WithConn has put the connection into the request's context.
func KeepFrom(ctx context.Context) {
	if of, ok := ctx.Value(key{}).(net.Conn); ok {
		Keep(of)
	}
}

type limited struct {
	net.Listener
	most int

	mu       sync.Mutex
	accepted uint64
	open     map[*conn]bool
	unknown  map[string]int // the number of connections of unknown clients, by address
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, listener: l, address: hostOf(raw.RemoteAddr())}
		loser := l.admit(c)
		if loser != nil {
			_ = loser.Close()
		}
		if loser != c {
			return c, nil
		}
	}
}

// admit registers the connection c. It returns nil if the limit is not reached. Otherwise it returns the connection
// that the listener must close: an open connection, or c itself if the clients of all open connections are known.
func (l *limited) admit(c *conn) (loser *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		for other := range l.open {
			if !other.known && (loser == nil || l.before(other, loser)) {
				loser = other
			}
		}
		if loser == nil {
			return c
		}
		l.forget(loser)
	}
	l.accepted++
	c.number = l.accepted
	l.open[c] = true
	l.unknown[c.address]++
	return loser
}

// before reports whether the connection a must be closed before the connection b.
func (l *limited) before(a, b *conn) bool {
	if of, other := l.unknown[a.address], l.unknown[b.address]; of != other {
		return of > other
	}
	return a.number < b.number
}

// forget removes a connection from the open connections. It is idempotent.
func (l *limited) forget(c *conn) {
	if l.open[c] {
		delete(l.open, c)
		l.markKnown(c)
	}
}

// markKnown marks the client of the connection as known. The connection no longer counts as a connection of an
// unknown client.
func (l *limited) markKnown(c *conn) {
	if c.known {
		return
	}
	c.known = true
	if l.unknown[c.address]--; l.unknown[c.address] == 0 {
		delete(l.unknown, c.address)
	}
}

// conn is a connection of a limited listener. Its method Close also removes it from the listener's open connections.
type conn struct {
	net.Conn
	listener *limited
	address  string
	number   uint64 // increases with each accepted connection
	known    bool   // guarded by the listener's mu
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

func (c *conn) keep() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.listener.open[c] {
		c.listener.markKnown(c)
	}
}

// hostOf returns the address without its port.
func hostOf(address net.Addr) string {
	if host, _, err := net.SplitHostPort(address.String()); err == nil {
		return host
	}
	return address.String()
}
