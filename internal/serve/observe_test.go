package serve

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

func TestCertificateExpiry(t *testing.T) {
	dir := t.TempDir()
	cert := filepath.Join(dir, "tls.crt")
	testkit.NewAuthority(t).Issue(t).Write(t, cert, filepath.Join(dir, "tls.key"))
	o, err := ObserveFlags{}.Open(quiet)
	require.NoError(t, err)
	o.ObserveCertificate(cert)
	families, err := o.Registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "liqo_autoscaler_tls_certificate_expiry_timestamp_seconds" {
			require.Greater(t, f.GetMetric()[0].GetGauge().GetValue(), float64(time.Now().Unix()))
			return
		}
	}
	require.Fail(t, "not collected")
}

func TestTakenPortsAreReported(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	_, err = ObserveFlags{Metrics: address}.Open(quiet)
	require.ErrorContains(t, err, `listen for metrics: listen tcp `+address)
	require.ErrorContains(t, err, `give another address with --metrics-listen, or --metrics-listen "" for none`)

	free := testkit.FreePorts(t, 1)[0]
	_, err = ObserveFlags{Metrics: free, Health: address}.Open(quiet)
	require.ErrorContains(t, err, "--health-listen")
	l, err := net.Listen("tcp", free)
	require.NoError(t, err, "the first port was released")
	require.NoError(t, l.Close())

	o, err := ObserveFlags{}.Open(quiet)
	require.NoError(t, err)
	require.Equal(t, "off", o.MetricsURL())
	require.Equal(t, "off", o.HealthURL())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, o.Serve(ctx))
}
