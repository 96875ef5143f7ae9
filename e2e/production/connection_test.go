package production

import (
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// connection runs every command with each possible connection to Temporal, configured only by the environment.
func (s *stack) connection(t *testing.T) {
	other := testkit.NewAuthority(t)
	require.NoError(t, os.WriteFile(s.in("other-ca.crt"), other.PEM(), 0o600))
	other.Issue(t).Write(t, s.in("other.crt"), s.in("other.key"))
	s.temporal.CA.Issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }).Write(t,
		s.in("expired.crt"), s.in("expired.key"))
	s.bareNamespace(t)
	worker := []string{"worker", "--backend", "sim", "--world", s.in("elsewhere.json"), "--offers", s.world.Offers(),
		"--metrics-listen", "", "--health-listen", "", "--log-level", "error"}
	server := []string{"grpcserver", "--config", s.in("groups.yaml"), "--listen", "127.0.0.1:0", "--insecure-plaintext",
		"--metrics-listen", "", "--health-listen", "", "--log-level", "error"}
	for _, c := range []struct {
		what   string
		change map[string]string
		code   int
		says   string
		also   bool // this case also runs the worker and the gRPC server
	}{
		{"all is well", nil, 0, "", false},
		{"wrong authority", map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": s.in("other-ca.crt")}, 4,
			"is not among the authorities we trust", true},
		{"expired certificate", map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": s.in("expired.crt"),
			"TEMPORAL_TLS_CLIENT_KEY_PATH": s.in("expired.key")}, 4, "expired on", true},
		{"a foreign certificate", map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": s.in("other.crt"),
			"TEMPORAL_TLS_CLIENT_KEY_PATH": s.in("other.key")}, 4, "refuses our client certificate", true},
		{"no certificate", map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": "", "TEMPORAL_TLS_CLIENT_KEY_PATH": ""}, 4,
			"requires a client certificate", false},
		{"no TLS", map[string]string{"TEMPORAL_TLS": "false"}, 4, "give --temporal-tls", false},
		{"no server there", map[string]string{"TEMPORAL_ADDRESS": testkit.FreePorts(t, 1)[0]}, 3,
			"no process listens", false},
		{"no such namespace", map[string]string{"TEMPORAL_NAMESPACE": "nowhere"}, 5, "has no namespace nowhere", true},
	} {
		commands := [][]string{{"status"}, {"offers"}}
		if c.also {
			commands = append(commands, worker, server)
		}
		env := s.temporal.Environment(c.change)
		for _, args := range commands {
			t.Run(c.what+", "+args[0], func(t *testing.T) {
				t.Parallel() // a worker and a gRPC server give up only after 15 s
				out, code := s.cli(t, env, args...)
				require.Equal(t, c.code, code, "%s", out)
				require.Contains(t, string(out), c.says)
				if code != 0 {
					require.Equal(t, 1, strings.Count(string(out), "\n"), "one line: %s", out)
				}
			})
		}
	}
	out, code := s.cli(t, s.temporal.Environment(map[string]string{"TEMPORAL_NAMESPACE": "bare"}), "temporal", "setup")
	require.Zero(t, code, "%s", out)
	require.Contains(t, string(out), "registered: LiqoGroup, LiqoInstance, LiqoProvider")
	out, code = s.cli(t, s.env, "temporal", "setup")
	require.Zero(t, code, "%s", out)
	require.Contains(t, string(out), "namespace "+temporal.Namespace+": is there")
}

// bareNamespace makes a namespace without our search attributes.
func (s *stack) bareNamespace(t *testing.T) {
	c := s.dial(t, "bare")
	_, err := c.WorkflowService().RegisterNamespace(s.ctx, &workflowservice.RegisterNamespaceRequest{Namespace: "bare",
		WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
	require.NoError(t, err)
}

// dial returns a client of the SDK for a namespace.
func (s *stack) dial(t *testing.T, namespace string) client.Client {
	t.Helper()
	target, err := s.flags(namespace).Open(quiet())
	require.NoError(t, err)
	o := target.Options()
	o.Logger = quiet()
	c, err := client.NewLazyClient(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}
