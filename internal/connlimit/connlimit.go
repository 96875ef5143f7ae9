// Package connlimit bounds the connections of a listener, so that unknown clients can neither exhaust the memory of a
// process nor prevent known clients from connecting. A client is known after a call of Keep.
package connlimit

import (
	"context"
	"net"
	"sync"
)

// Listen returns a listener with at most the given number of open connections. At the limit it closes a connection for
// each new one: the oldest connection of the address that has the most connections of unknown clients. So an address
// with many connections loses its own connections first. If the clients of all open connections are known, the listener
// closes the new connection.
func Listen(listener net.Listener, most int) net.Listener {
	return &limited{Listener: listener, most: most, open: map[*conn]bool{}, unknown: map[string]int{}}
}

// Keep marks the client of the connection as known. A listener of Listen never closes such a connection for a new one.
// Keep ignores a connection of another kind of listener.
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

// WithConn returns a context with the connection. It is the ConnContext of an http.Server whose handlers call KeepFrom.
func WithConn(ctx context.Context, of net.Conn) context.Context {
	return context.WithValue(ctx, key{}, of)
}

// KeepFrom calls Keep with the connection of a request, which WithConn has put into the request's context.
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

// admit registers the connection, and returns the connection that must be closed for it, or nil below the limit. If all
// clients are known, it returns the new connection.
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

// before reports whether a must be closed before b.
func (l *limited) before(a, b *conn) bool {
	if of, other := l.unknown[a.address], l.unknown[b.address]; of != other {
		return of > other
	}
	return a.number < b.number
}

// forget removes a connection from the open ones. It is idempotent.
func (l *limited) forget(c *conn) {
	if l.open[c] {
		delete(l.open, c)
		l.markKnown(c)
	}
}

// markKnown marks the client as known, and no longer counts the connection for its address.
func (l *limited) markKnown(c *conn) {
	if c.known {
		return
	}
	c.known = true
	if l.unknown[c.address]--; l.unknown[c.address] == 0 {
		delete(l.unknown, c.address)
	}
}

// conn is a connection of a limited listener. Close removes it from the listener's open connections.
type conn struct {
	net.Conn
	listener *limited
	address  string
	number   uint64 // the order of acceptance
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
