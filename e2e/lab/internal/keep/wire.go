package keep

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// A network namespace has no interface to the outside. The keeper has sockets in the namespace, and uses them to
// carry traffic between the namespace and the outside, or between two namespaces.

// relayTCP forwards TCP connections from a port on the namespace's loopback to the same port on loopback outside.
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

// place is a port on the loopback of a namespace, at which packets to an address are delivered. The zero place means
// nowhere.
type place struct {
	ns   *netns
	port int
}

// wire receives the packets that processes in a namespace send to an address. It delivers them at a place, and
// carries the answers back. For each packet and each answer, it calls the function `leads` to find the place. If the
// place is zero, the packet is lost, as on a real wire that is cut.
type wire struct {
	front  *net.UDPConn
	leads  func() place
	client atomic.Pointer[netip.AddrPort] // address of the last sender
	back   *net.UDPConn                   // socket that is connected to the place in the field at
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

// reach returns a socket that is connected to the place. It uses the last socket again if the place is the same.
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
