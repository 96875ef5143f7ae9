package grpcserver

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/encoding/protowire"
)

// A caller without a certificate may have one concurrent expander request, for at most two seconds. All such callers
// together may have three. A caller with a certificate does not count.
func TestAnonymousExpanderRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &admission{}
		call := func(address string, certified bool) (end func(), err error) {
			var info credentials.TLSInfo
			if certified {
				info.State.VerifiedChains = [][]*x509.Certificate{{}}
			}
			ctx, cancel := context.WithCancel(t.Context())
			ctx = peer.NewContext(ctx, &peer.Peer{AuthInfo: info,
				Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 1000}})
			admitted, err := d.admit(ctx, &tap.Info{FullMethodName: "/" + expanderService + "/BestOptions"})
			if err == nil && !certified {
				deadline, bounded := admitted.Deadline()
				require.True(t, bounded)
				require.Equal(t, anonymousTime, time.Until(deadline))
			}
			return cancel, err
		}
		end, err := call("10.0.0.1", false)
		require.NoError(t, err)
		_, err = call("10.0.0.1", false)
		requireCode(t, codes.ResourceExhausted, err)
		for _, address := range []string{"10.0.0.2", "10.0.0.3"} {
			_, err = call(address, false)
			require.NoError(t, err)
		}
		_, err = call("10.0.0.4", false)
		requireCode(t, codes.ResourceExhausted, err)
		for range 10 {
			_, err = call("10.0.0.1", true)
			require.NoError(t, err)
		}
		end()
		_, err = call("10.0.0.1", false)
		require.NoError(t, err, "immediately, because the client may have its answer")
		pass(anonymousTime)
		synctest.Wait()
		for _, address := range []string{"10.0.0.4", "10.0.0.5", "10.0.0.6"} {
			_, err = call(address, false)
			require.NoError(t, err, "the time of the others is over")
		}
	})
}

// A request of the largest allowed size uses little more memory than its bytes, even in its worst form.
func TestExpanderRequestUsesLittleMemory(t *testing.T) {
	const size = 8 << 20
	for name, o := range map[string][]byte{
		"empty pods":       bytes.Repeat([]byte{4<<3 | 2, 0}, size/2),
		"empty later pods": bytes.Repeat([]byte{5<<3 | 2, 0}, size/2),
		"pod of containers": protowire.AppendBytes([]byte{4<<3 | 2},
			protowire.AppendBytes([]byte{2<<3 | 2}, bytes.Repeat([]byte{2<<3 | 2, 0}, size/2))),
	} {
		raw := protowire.AppendBytes([]byte{1<<3 | 2}, o)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		req := &options{}
		req.read(raw)
		runtime.ReadMemStats(&after)
		require.Error(t, req.err, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*size), name)
	}
	req := &options{}
	req.read(bytes.Repeat([]byte{1<<3 | 2, 0}, size/2))
	require.ErrorContains(t, req.err, "more than 1000 options")
	for _, raw := range [][]byte{{0xff}, {1<<3 | 2, 9}, {1<<3 | 2, 3, 1<<3 | 2, 1, 0xff}} {
		req = &options{}
		req.read(raw)
		require.Error(t, req.err)
	}
}
