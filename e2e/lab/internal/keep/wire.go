package keep

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// A network namespace has no interface to the outside. Sockets that the keeper holds inside the namespace carry its
// traffic to the outside or to another namespace.

// relayTCP connects a port on the namespace's loopback to the same port outside.
func (n *netns) relayTCP(port int) error {
	var listener net.Listener
	if err := n.do(func() (err error) {
		listener, err = net.Listen("tcp4", loopback(port))
		return err
	}); err != nil {
		return err
	}
	n.keep(listener)
	go func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return
			}
			go join(inside, loopback(port))
		}
	}()
	return nil
}

func join(inside net.Conn, address string) {
	defer inside.Close()
	outside, err := net.Dial("tcp4", address)
	if err != nil {
		return
	}
	defer outside.Close()
	go func() {
		_, _ = io.Copy(outside, inside)
		_ = outside.Close()
	}()
	_, _ = io.Copy(inside, outside)
}

// place is the destination of an address: a port on loopback of a namespace, or nowhere.
type place struct {
	ns   *netns
	port int
}

// wire carries packets from senders to an address inside a namespace to the place to which this address leads, and
// carries the answers back. It determines the place again for each packet and answer. Packets for nowhere are lost, as
// on a real wire that is cut.
type wire struct {
	front  *net.UDPConn
	leads  func() place
	client atomic.Pointer[netip.AddrPort] // the last sender
	back   *net.UDPConn                   // socket inside that place
	at     place
}

func (n *netns) relayUDP(at netip.AddrPort, leads func() place) error {
	w := &wire{leads: leads}
	if err := n.do(func() (err error) {
		w.front, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		return err
	}); err != nil {
		return err
	}
	n.keep(w.front)
	go w.forward()
	return nil
}

func (w *wire) forward() {
	buffer := make([]byte, 1<<16)
	for {
		size, from, err := w.front.ReadFromUDPAddrPort(buffer)
		if err != nil { // closed
			w.reach(place{})
			return
		}
		w.client.Store(&from)
		to := w.leads()
		if to.ns == nil {
			continue
		}
		if back := w.reach(to); back != nil {
			_, _ = back.Write(buffer[:size])
		}
	}
}

// reach returns a socket for the place. When the place is the same as before, it reuses the socket.
func (w *wire) reach(to place) *net.UDPConn {
	if w.back != nil && w.at == to {
		return w.back
	}
	if w.back != nil {
		_ = w.back.Close()
		w.back = nil
	}
	if to.ns == nil {
		return nil
	}
	if err := to.ns.do(func() (err error) {
		w.back, err = net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: to.port})
		return err
	}); err != nil { // the namespace was closed in the meantime
		w.back = nil
		return nil
	}
	w.at = to
	to.ns.keep(w.back)
	go w.backward(w.back, to)
	return w.back
}

func (w *wire) backward(back *net.UDPConn, from place) {
	buffer := make([]byte, 1<<16)
	for {
		size, err := back.Read(buffer)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED): // no process listens there yet
			continue
		case err != nil: // closed
			return
		case w.leads() != from:
			continue
		}
		_, _ = w.front.WriteToUDPAddrPort(buffer[:size], *w.client.Load())
	}
}
