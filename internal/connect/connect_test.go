package connect_test

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

// For each fault of the connection, the error is one line with the address and the remedy, and has an exit code.
func TestFaultsAreReportedWithTheirRemedy(t *testing.T) {
	const nowhere = "temporal..nowhere:7233" // an invalid name, so Go uses no resolver and the test needs no network
	good, other := newPKI(t), newPKI(t)
	mutual, plain := serve(t, good.server(t)), serve(t, nil)
	nobody := testkit.FreePorts(t, 1)[0]
	old := newPKI(t)
	old.ca.Issue(t, expired).Write(t, old.cert, old.keyFile)
	with := func(change func(*connect.Flags)) connect.Flags { f := good.flags(mutual.address); change(&f); return f }
	at := func(address string) connect.Flags { return connect.Flags{Address: address, Namespace: "there"} }
	client := func(cert, key string) connect.Flags {
		return with(func(f *connect.Flags) { f.Cert, f.Key = cert, key })
	}
	for name, c := range map[string]struct {
		flags connect.Flags
		code  int
		says  string
	}{
		"all is well":  {flags: good.flags(mutual.address)},
		"plaintext":    {flags: at(plain.address)},
		"no such host": {at(nowhere), connect.ExitUnreachable, "temporal..nowhere has no address"},
		"no listener":  {at(nobody), connect.ExitUnreachable, "no process listens at Temporal's address"},
		"needs TLS":    {at(mutual.address), connect.ExitRefused, "give --temporal-tls"},
		"has no TLS":   {good.flags(plain.address), connect.ExitRefused, "does not speak TLS"},
		"wrong authority": {with(func(f *connect.Flags) { f.CA = other.caFile }), connect.ExitRefused,
			`signed by "CN=test authority", which is not among`},
		"no certificate": {client("", ""), connect.ExitRefused, "requires a client certificate"},
		"foreign client": {client(other.cert, other.keyFile), connect.ExitRefused,
			"refuses our client certificate (" + other.cert + ")"},
		"client expired": {client(old.cert, old.keyFile), connect.ExitRefused, "(" + old.cert + ") expired on"},
		"server expired": {good.flags(serve(t, good.server(t, expired)).address), connect.ExitRefused, "renew it there"},
		"another name": {with(func(f *connect.Flags) { f.ServerName = "frontend" }), connect.ExitRefused,
			"is for localhost, 127.0.0.1, not for frontend"},
		"no such namespace": {with(func(f *connect.Flags) { f.Namespace = "edge" }), connect.ExitNamespace,
			"no namespace edge: create it with liqo-autoscaler temporal setup"},
	} {
		t.Run(name, func(t *testing.T) {
			target, client := dial(t, c.flags)
			err := target.Reach(t.Context())
			if err == nil {
				err = target.Check(t.Context(), client)
			}
			require.Equal(t, c.code, connect.ExitCode(err), "%v", err)
			if c.code == 0 {
				return
			}
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
			if c.flags.Address != nowhere {
				require.ErrorContains(t, err, c.flags.Address)
			}
			// Later requests of the SDK also fail because of this fault. Check explains their error in the same way.
			require.Equal(t, c.code, connect.ExitCode(target.Check(t.Context(), client)))
		})
	}
}

func TestRefusalOfTemporalIsExplained(t *testing.T) {
	f := serve(t, nil)
	f.refuse = serviceerror.NewPermissionDenied("Request unauthorized.", "")
	target, client := dial(t, connect.Flags{Address: f.address, Namespace: "there"})
	err := target.Check(t.Context(), client)
	require.Equal(t, connect.ExitRefused, connect.ExitCode(err))
	require.ErrorContains(t, err, "Request unauthorized.: check the client certificate or the API key")
}

// The flags have precedence over the environment, and the environment has precedence over the profile in the file.
func TestFlagsHavePrecedence(t *testing.T) {
	p, dir := newPKI(t), t.TempDir()
	f := serve(t, p.server(t))
	write := func(text string) string {
		path := filepath.Join(dir, "temporal.toml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	path := write("[profile.prod]\naddress = \"file:1\"\nnamespace = \"file\"\n[profile.prod.tls]\n" +
		"server_ca_cert_data = \"nonsense\"\n")
	t.Setenv("TEMPORAL_CONFIG_FILE", path)
	t.Setenv("TEMPORAL_PROFILE", "prod")
	open := func(flags connect.Flags) (*connect.Target, error) { return flags.Open(slog.New(slog.DiscardHandler)) }
	_, err := open(connect.Flags{})
	require.ErrorContains(t, err, "no PEM certificate in the authority")

	target, err := open(connect.Flags{CA: p.caFile})
	require.NoError(t, err)
	require.Equal(t, []string{"file:1", "file"}, []string{target.Address, target.Namespace})
	t.Setenv("TEMPORAL_ADDRESS", f.address)
	t.Setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", p.cert)
	t.Setenv("TEMPORAL_TLS_CLIENT_KEY_PATH", p.keyFile)
	target, client := dial(t, connect.Flags{CA: p.caFile, Namespace: "there"})
	require.NoError(t, target.Check(t.Context(), client))
	target, err = open(connect.Flags{CA: p.caFile, Address: "flag:1"})
	require.NoError(t, err)
	require.Equal(t, []string{"flag:1", "file"}, []string{target.Address, target.Namespace})

	// Without a file and without flags, the environment is sufficient.
	t.Setenv("TEMPORAL_CONFIG_FILE", "")
	t.Setenv("TEMPORAL_PROFILE", "")
	t.Setenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH", p.caFile)
	t.Setenv("TEMPORAL_NAMESPACE", "there")
	target, client = dial(t, connect.Flags{})
	require.NoError(t, target.Check(t.Context(), client))
	require.True(t, target.Local())
}

func TestImpossibleSettingsAreRefused(t *testing.T) {
	p, dir := newPKI(t), t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for says, f := range map[string]connect.Flags{
		"--temporal-config-file: stat":                        {ConfigFile: filepath.Join(dir, "none")},
		"unable to find profile prod":                         {Profile: "prod", ConfigFile: empty},
		`address "http://temporal:7233": use host:port`:       {Address: "http://temporal:7233"},
		`address "temporal": use host:port`:                   {Address: "temporal"},
		"give the client certificate and its key, or neither": {Cert: p.cert},
		"no PEM certificate in the authority " + empty:        {CA: empty},
		"client certificate " + p.caFile + " and its key":     {Cert: p.caFile, Key: p.keyFile},
		empty + ": the file must contain the API key":         {APIKeyIn: empty},
		"open " + filepath.Join(dir, "none"):                  {CA: filepath.Join(dir, "none")},
	} {
		_, err := f.Open(slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, says)
		require.Equal(t, 1, connect.ExitCode(err))
	}
	var toggle connect.Toggle
	require.ErrorContains(t, toggle.Set("maybe"), "use true or false")
}

// After certificates and authorities are renewed, the next connection uses them. After the API key is renewed, the
// next request uses it.
func TestFilesAreReadAgain(t *testing.T) {
	p := newPKI(t)
	f := serve(t, p.server(t))
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("one\n"), 0o600))
	flags := p.flags(f.address)
	flags.APIKeyIn = key
	target, client := dial(t, flags)
	require.NoError(t, target.Check(t.Context(), client))
	require.NoError(t, os.WriteFile(key, []byte("two\n"), 0o600))
	require.NoError(t, target.Check(t.Context(), client))
	require.Equal(t, []string{"Bearer one", "Bearer two"}, f.keys)

	renewed := newPKI(t)
	next := serve(t, renewed.server(t))
	for from, to := range map[string]string{renewed.caFile: p.caFile, renewed.cert: p.cert, renewed.keyFile: p.keyFile} {
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, content, 0o600))
	}
	// After a lost connection, gRPC uses the same credentials object again. The object then reads the renewed files.
	creds := target.Handshake()
	conn, err := net.Dial("tcp", next.address)
	require.NoError(t, err)
	defer conn.Close()
	_, _, err = creds.ClientHandshake(t.Context(), "127.0.0.1", conn)
	require.NoError(t, err)
}

// Await ends if Temporal refuses us permanently. It does not end while Temporal is unreachable.
func TestAwaitEndsOnAPermanentRefusal(t *testing.T) {
	p := newPKI(t)
	f := serve(t, p.server(t))
	f.refuse = serviceerror.NewPermissionDenied("no", "")
	target, client := dial(t, p.flags(f.address))
	log := &testkit.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	require.Equal(t, connect.ExitRefused, connect.ExitCode(target.AwaitFor(t.Context(), client, logger, time.Second)))

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	target, client = dial(t, connect.Flags{Address: testkit.FreePorts(t, 1)[0]})
	require.NoError(t, target.AwaitFor(ctx, client, logger, 0))
	require.Equal(t, 1, strings.Count(log.String(), "no process listens"), "logged once: %s", log)
}

// Reach sends nothing over a plaintext connection. If it sent a TLS handshake, Temporal would reset the connection,
// and `kubectl port-forward` ends when a connection is reset.
func TestReachSendsNothingToAPlaintextServer(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	received := make(chan []byte, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn)
		received <- all
	}()
	target, _ := dial(t, connect.Flags{Address: listener.Addr().String()})
	require.NoError(t, target.Reach(t.Context()))
	require.Empty(t, <-received)
}
