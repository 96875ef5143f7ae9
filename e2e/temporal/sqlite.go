package temporal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// Small is the real Temporal server on a SQLite file and without TLS, for one machine.
type Small struct {
	*proc.Process
	Address string // host:port of the frontend
	Metrics string // URL of the server's Prometheus metrics
	File    string // path of the database
}

// NewSmall starts a Small that ends when the test ends. Its files and its log are in the folder dir. The first start
// takes minutes.
func NewSmall(t testing.TB, dir string) *Small {
	t.Helper()
	bin, err := lab.BuildTemporal(t.Context(), t.Logf)
	require.NoError(t, err)
	ports := testkit.FreePorts(t, 10)
	s := &Small{Address: ports[0], Metrics: "http://" + ports[9] + "/metrics", File: filepath.Join(dir, "temporal.db")}
	var out bytes.Buffer
	text := template.Must(template.New("").Parse(storeOfSmall + servicesText))
	require.NoError(t, text.Execute(&out, map[string]any{"Main": s.File, "Visibility": filepath.Join(dir, "visibility.db"),
		"Ports": numbers(t, ports), "Metrics": ports[9], "Dynamic": filepath.Join(dir, "dynamic.yaml")}))
	config := filepath.Join(dir, "temporal.yaml")
	require.NoError(t, os.WriteFile(config, out.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dynamic.yaml"), []byte(dynamicOfSmall), 0o600))
	s.Process, err = proc.Start(proc.Spec{Name: "temporal", Path: filepath.Join(bin, "server"), LogDir: dir,
		Args: []string{"--config-file", config, "--allow-no-auth", "start"}})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	testkit.Until(t, time.Minute, "Temporal listens", func() error { return listens(t, s.Address) })
	return s
}

// dynamicOfSmall has the same settings as temporal-dev.sh, because both servers have only one shard, and not
// hundreds.
const dynamicOfSmall = `
history.transferProcessorMaxPollRPS:
- value: 1000
`

const storeOfSmall = `
log: {stdout: true, level: warn}
persistence:
  defaultStore: main
  visibilityStore: visibility
  numHistoryShards: 1
  datastores:
    main:
      sql: {pluginName: sqlite, databaseName: {{.Main}}, connectAddr: localhost, connectProtocol: tcp, maxConns: 1,
        maxIdleConns: 1, connectAttributes: {mode: rwc, setup: "true", journal_mode: wal, synchronous: "2"}}
    visibility:
      sql: {pluginName: sqlite, databaseName: {{.Visibility}}, connectAddr: localhost, connectProtocol: tcp,
        maxConns: 1, maxIdleConns: 1,
        connectAttributes: {mode: rwc, setup: "true", journal_mode: wal, synchronous: "2"}}
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}
  metrics: {prometheus: {listenAddress: "{{.Metrics}}"}}
`
