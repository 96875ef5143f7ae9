package connect_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

// throughProxy is an environment variable of the process that connects. The test needs a separate process, because
// net/http reads the proxy variables only once.
const throughProxy = "CONNECT_TEST_THROUGH_PROXY"

// connectTo answers a CONNECT request by a connection to the address.
func connectTo(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		to, err := net.Dial("tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		from, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, buffered); _ = to.Close() }()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}
}

// website starts a server that uses HTTP/2 without TLS, but not gRPC.
func website(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	web := &http.Server{Handler: http.NotFoundHandler(), Protocols: &http.Protocols{}}
	web.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() { _ = web.Close() })
	return l.Addr().String()
}

// grpc-go uses the HTTP proxy in the environment variables. If the proxy causes an error, the error names the proxy.
func TestErrorsNameTheProxy(t *testing.T) {
	if os.Getenv(throughProxy) != "" {
		target, client := dial(t, connect.Flags{Address: "temporal.example:7233", Namespace: "there"})
		err := target.Reach(t.Context())
		require.NoError(t, err)
		err = target.Check(t.Context(), client)
		fmt.Printf("explained: %d %v\n", connect.ExitCode(err), err)
		return
	}
	for says, proxy := range map[string]http.HandlerFunc{
		"answers in place of Temporal at temporal.example:7233 (": connectTo(website(t)),
		"Temporal at temporal.example:7233 does not answer through": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		},
	} {
		web := httptest.NewServer(proxy)
		t.Cleanup(web.Close)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestErrorsNameTheProxy$")
		cmd.Env = append(os.Environ(), throughProxy+"=1", "HTTPS_PROXY="+web.URL, "NO_PROXY=", "no_proxy=")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		host := strings.TrimPrefix(web.URL, "http://")
		require.Contains(t, string(out), "explained: "+strconv.Itoa(connect.ExitUnreachable)+" ")
		require.Contains(t, string(out), says)
		require.Contains(t, string(out), "the HTTP proxy "+host+" ")
		require.Contains(t, string(out), "NO_PROXY")
	}
}

// If no proxy is used, the error reports that another server listens at the address.
func TestAnotherServerAtTheAddress(t *testing.T) {
	address := website(t)
	target, client := dial(t, connect.Flags{Address: address, Namespace: "there"})
	err := target.Check(t.Context(), client)
	require.Equal(t, connect.ExitUnreachable, connect.ExitCode(err))
	require.ErrorContains(t, err, "the server at "+address+" is no Temporal frontend (")
}
