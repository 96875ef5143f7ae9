// Package temporal runs Temporal as in production, for the suites: the real server on PostgreSQL, with mutual TLS at
// its frontend.
package temporal

import (
	"bytes"
	"encoding/hex"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/postgres"
)

// These constants are the names of Temporal's databases.
const (
	Main       = "temporal"
	Visibility = "temporal_visibility"
)

// Namespace is our namespace. `liqo-autoscaler temporal setup` creates it.
const Namespace = "autoscaling"

// Server is the real Temporal server with its own PostgreSQL. All four services of Temporal run in one process. Tests
// may kill Temporal or PostgreSQL and start it again. Server is not safe for concurrent use.
type Server struct {
	Postgres *postgres.Server
	Address  string               // of the frontend, host:port
	CA       *testkit.Certificate // the authority of the frontend's certificate and of its clients' certificates
	// CAFile, Cert and Key are the paths of the files that a client needs.
	CAFile, Cert, Key string

	dir     string
	spec    proc.Spec
	process *proc.Process // nil while the server must not run
}

// New starts a Server that ends when the test ends. Its files and its log are in the folder dir. The first start
// takes minutes.
func New(t testing.TB, dir string) *Server {
	t.Helper()
	bin, err := lab.BuildTemporal(t.Context(), t.Logf)
	require.NoError(t, err)
	s := &Server{Postgres: postgres.New(t), dir: dir, CA: testkit.NewAuthority(t)}
	s.CAFile, s.Cert, s.Key = s.in("temporal-ca.crt"), s.in("client.crt"), s.in("client.key")
	require.NoError(t, os.WriteFile(s.CAFile, s.CA.PEM(), 0o600))
	s.CA.Issue(t).Write(t, s.in("frontend.crt"), s.in("frontend.key"))
	s.CA.Issue(t).Write(t, s.Cert, s.Key)

	for database, schema := range map[string]string{Main: "postgresql/v12/temporal",
		Visibility: "postgresql/v12/visibility"} {
		s.Postgres.CreateDatabase(t, database)
		s.sql(t, filepath.Join(bin, "sql"), database, "setup-schema", "--version", "0.0")
		s.sql(t, filepath.Join(bin, "sql"), database, "update-schema", "--schema-name", schema)
	}
	s.spec = proc.Spec{Name: "temporal", Path: filepath.Join(bin, "server"), LogDir: dir,
		Args: []string{"--config-file", s.config(t), "start"}}
	t.Cleanup(s.Kill)
	s.Start(t)
	return s
}

func (s *Server) in(name string) string { return filepath.Join(s.dir, name) }

// sql runs Temporal's schema tool.
func (s *Server) sql(t testing.TB, tool, database string, args ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Postgres.Address)
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), tool, append([]string{"--plugin", "postgres12", "--endpoint", host,
		"--port", port, "--user", postgres.User, "--database", database}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Start starts the server unless it runs, and returns when its frontend listens.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if s.process == nil {
		s.start(t)
	}
	testkit.Until(t, 2*time.Minute, "Temporal listens", func() error {
		s.Revive(t)
		return listens(t, s.Address)
	})
}

// listens returns an error if no process accepts connections at the address.
func listens(t testing.TB, address string) error {
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		conn.Close()
	}
	return err
}

// numbers returns the port numbers in the addresses.
func numbers(t testing.TB, addresses []string) (all []string) {
	t.Helper()
	for _, address := range addresses {
		_, number, err := net.SplitHostPort(address)
		require.NoError(t, err)
		all = append(all, number)
	}
	return all
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	p, err := proc.Start(s.spec)
	require.NoError(t, err)
	s.process = p
}

// Revive starts the server again if it has ended, as the kubelet would do. The server ends when its database is down.
func (s *Server) Revive(t testing.TB) {
	t.Helper()
	if s.process == nil {
		return
	}
	select {
	case <-s.process.Done():
		s.start(t)
	default:
	}
}

// Kill ends the server as a power failure would. Start starts it again.
func (s *Server) Kill() {
	if s.process != nil {
		s.process.Kill()
		s.process = nil
	}
}

// Pid returns the server's process id.
func (s *Server) Pid() int { return s.process.Pid() }

// Contents returns all rows of the server's databases, in the form in which they are stored.
func (s *Server) Contents(t testing.TB) []byte {
	t.Helper()
	var out []byte
	for _, database := range []string{Main, Visibility} {
		dump := s.Postgres.Run(t, "pg_dump", append(s.Postgres.Client(), "--data-only", database)...)
		out = append(out, bytea.ReplaceAllFunc([]byte(dump), func(field []byte) []byte {
			raw, err := hex.DecodeString(string(field[len(`\\x`):]))
			require.NoError(t, err)
			return raw
		})...)
	}
	return out
}

// bytea matches bytes in the form in which pg_dump writes them.
var bytea = regexp.MustCompile(`\\\\x(?:[0-9a-f]{2})*`)

// Environment returns the environment variables with which a process connects to the server. change overrides
// variables; a variable with the value "" in change is left out.
func (s *Server) Environment(change map[string]string) []string {
	all := map[string]string{"TEMPORAL_ADDRESS": s.Address, "TEMPORAL_NAMESPACE": Namespace,
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH": s.CAFile, "TEMPORAL_TLS_CLIENT_CERT_PATH": s.Cert,
		"TEMPORAL_TLS_CLIENT_KEY_PATH": s.Key}
	maps.Copy(all, change)
	var out []string
	for name, value := range all {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// config writes the server's config file.
func (s *Server) config(t testing.TB) string {
	t.Helper()
	ports := testkit.FreePorts(t, 9)
	s.Address = ports[0]
	var out bytes.Buffer
	require.NoError(t, template.Must(template.New("").Parse(configText+servicesText)).Execute(&out, map[string]any{
		"Postgres": s.Postgres.Address, "User": postgres.User, "Main": Main, "Visibility": Visibility,
		"Ports": numbers(t, ports),
		"CA":    s.CAFile, "Cert": s.in("frontend.crt"), "Key": s.in("frontend.key"), "Dynamic": s.in("dynamic.yaml"),
	}))
	require.NoError(t, os.WriteFile(s.in("dynamic.yaml"), nil, 0o600))
	require.NoError(t, os.WriteFile(s.in("temporal.yaml"), out.Bytes(), 0o600))
	return s.in("temporal.yaml")
}

// configText is a config as in production, except for the number of shards. In production 512 shards are usual, but
// this is too many for a machine with two cores.
const configText = `
log: {stdout: true, level: warn}
persistence:
  defaultStore: main
  visibilityStore: visibility
  numHistoryShards: 4
  datastores:
    main:
      sql: {pluginName: postgres12, databaseName: {{.Main}}, connectAddr: "{{.Postgres}}", connectProtocol: tcp,
        user: {{.User}}, maxConns: 20, maxIdleConns: 20, maxConnLifetime: 1h}
    visibility:
      sql: {pluginName: postgres12, databaseName: {{.Visibility}}, connectAddr: "{{.Postgres}}", connectProtocol: tcp,
        user: {{.User}}, maxConns: 5, maxIdleConns: 5, maxConnLifetime: 1h}
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}
  tls:
    frontend:
      server: {certFile: {{.Cert}}, keyFile: {{.Key}}, clientCaFiles: [{{.CA}}], requireClientAuth: true}
      client: {serverName: localhost, rootCaFiles: [{{.CA}}]}
    systemWorker:
      certFile: {{.Cert}}
      keyFile: {{.Key}}
      client: {serverName: localhost, rootCaFiles: [{{.CA}}]}
`

// servicesText is the common part of both servers' configs.
const servicesText = `services:
  frontend: {rpc: {grpcPort: {{index .Ports 0}}, membershipPort: {{index .Ports 1}}, bindOnLocalHost: true,
    httpPort: {{index .Ports 8}}}}
  history: {rpc: {grpcPort: {{index .Ports 2}}, membershipPort: {{index .Ports 3}}, bindOnLocalHost: true}}
  matching: {rpc: {grpcPort: {{index .Ports 4}}, membershipPort: {{index .Ports 5}}, bindOnLocalHost: true}}
  worker: {rpc: {grpcPort: {{index .Ports 6}}, membershipPort: {{index .Ports 7}}, bindOnLocalHost: true}}
clusterMetadata:
  enableGlobalNamespace: false
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "localhost:{{index .Ports 0}}"}
dcRedirectionPolicy: {policy: noop}
archival:
  history: {state: disabled}
  visibility: {state: disabled}
publicClient: {hostPort: "127.0.0.1:{{index .Ports 0}}"}
dynamicConfigClient: {filepath: {{.Dynamic}}, pollInterval: 10s}
`
