package proc

import (
	"fmt"
	"net"
)

// FreePorts returns n distinct addresses on loopback that were free a moment ago. Another process may still take one
// before it is used.
func FreePorts(n int) ([]string, error) {
	out := make([]string, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find free port: %w", err)
		}
		defer l.Close() // all are held until all are found
		out = append(out, l.Addr().String())
	}
	return out, nil
}
