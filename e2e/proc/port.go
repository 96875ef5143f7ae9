package proc

import (
	"fmt"
	"net"
)

// FreePorts returns n different addresses on loopback whose ports were free a moment ago. Another process may occupy
// a port before the caller uses it.
func FreePorts(n int) ([]string, error) {
	out := make([]string, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find free port: %w", err)
		}
		defer l.Close() // all ports stay open until the last one is found
		out = append(out, l.Addr().String())
	}
	return out, nil
}
