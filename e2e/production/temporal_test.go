package production

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/postgres"
)

// Names of Temporal's databases.
const (
	dbMain       = "temporal"
	dbVisibility = "temporal_visibility"
)

// temporal is the real server, all four services in one process, on a PostgreSQL of its own.
type temporal struct {
	t        *testing.T
	postgres *postgres.Server
	address  string // of the frontend
	dir      string
	ca       *testkit.Certificate // of the frontend's certificate and of its clients'
	caFile   string
	spec     proc.Spec
	process  *proc.Process
	away     bool // killed, and not to come back yet
}

func newTemporal(ctx context.Context, t *testing.T, dir string) *temporal {
	t.Helper()
	bin, err := lab.BuildTemporal(ctx, t.Logf)
	require.NoError(t, err)
	began := time.Now()
	s := &temporal{t: t, postgres: postgres.New(t), dir: dir, ca: testkit.NewAuthority(t),
		caFile: filepath.Join(dir, "temporal-ca.crt")}
	measure("PostgreSQL up", time.Since(began))
	require.NoError(t, os.WriteFile(s.caFile, s.ca.PEM(), 0o600))
	s.ca.Issue(t).Write(t, s.in("frontend.crt"), s.in("frontend.key"))

	began = time.Now()
	for database, schema := range map[string]string{dbMain: "postgresql/v12/temporal",
		dbVisibility: "postgresql/v12/visibility"} {
		s.postgres.CreateDatabase(t, database)
		s.sql(ctx, filepath.Join(bin, "sql"), database, "setup-schema", "--version", "0.0")
		s.sql(ctx, filepath.Join(bin, "sql"), database, "update-schema", "--schema-name", schema)
	}
	measure("schema made", time.Since(began))
	s.spec = proc.Spec{Name: "temporal", Path: filepath.Join(bin, "server"), LogDir: dir,
		Args: []string{"--config-file", s.config(), "start"}}
	t.Cleanup(func() {
		if s.process != nil {
			s.process.Kill()
		}
	})
	began = time.Now()
	s.start()
	s.until(ctx, time.Minute)
	measure("Temporal up", time.Since(began))
	return s
}

func (s *temporal) in(name string) string { return filepath.Join(s.dir, name) }

// sql runs Temporal's schema tool.
func (s *temporal) sql(ctx context.Context, tool, database string, args ...string) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.postgres.Address)
	require.NoError(s.t, err)
	out, err := exec.CommandContext(ctx, tool, append([]string{"--plugin", "postgres12", "--endpoint", host, "--port",
		port, "--user", postgres.User, "--database", database}, args...)...).CombinedOutput()
	require.NoError(s.t, err, "%s", out)
}

func (s *temporal) start() {
	s.t.Helper()
	p, err := proc.Start(s.spec)
	require.NoError(s.t, err)
	s.process, s.away = p, false
}

// revive starts it again where it ended by itself, as the kubelet would.
func (s *temporal) revive() {
	s.t.Helper()
	select {
	case <-s.process.Done():
		if !s.away {
			s.start()
		}
	default:
	}
}

// kill ends it, until start.
func (s *temporal) kill() {
	s.away = true
	s.process.Kill()
}

// until waits for the frontend's port.
func (s *temporal) until(ctx context.Context, limit time.Duration) {
	s.t.Helper()
	testkit.Until(s.t, limit, "Temporal listens", func() error {
		s.revive()
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// config writes the server's config file.
func (s *temporal) config() string {
	s.t.Helper()
	ports := testkit.FreePorts(s.t, 9)
	s.address = ports[0]
	var numbers []string
	for _, p := range ports {
		_, number, err := net.SplitHostPort(p)
		require.NoError(s.t, err)
		numbers = append(numbers, number)
	}
	var out bytes.Buffer
	require.NoError(s.t, template.Must(template.New("").Parse(configText)).Execute(&out, map[string]any{
		"Postgres": s.postgres.Address, "User": postgres.User, "Main": dbMain, "Visibility": dbVisibility, "Ports": numbers,
		"CA": s.caFile, "Cert": s.in("frontend.crt"), "Key": s.in("frontend.key"), "Dynamic": s.in("dynamic.yaml"),
	}))
	require.NoError(s.t, os.WriteFile(s.in("dynamic.yaml"), nil, 0o600))
	require.NoError(s.t, os.WriteFile(s.in("temporal.yaml"), out.Bytes(), 0o600))
	return s.in("temporal.yaml")
}

// configText is a production config but for the number of shards, which two cores are too few for: 512 are usual.
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
services:
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
