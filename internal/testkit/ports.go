package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// FreePorts returns n loopback addresses on which no process listens. Their ports are below the range from which
// Linux assigns ports automatically. So a concurrent test of another package gets the same ports only if it calls
// FreePorts, too.
func FreePorts(t testing.TB, n int) []string {
	t.Helper()
	var addresses []string
	for tries := 0; len(addresses) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err != nil && tries < 1000 {
			continue
		}
		require.NoError(t, err)
		defer l.Close() // at the end, so that the ports differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}
