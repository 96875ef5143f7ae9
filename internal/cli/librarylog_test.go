package cli

import (
	"log"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// The reflector of one command may still log while another command creates its logger. The race detector checks that
// this is safe.
func TestLibrariesUseTheProcessLogger(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.DiscardHandler))
	said, stop, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		klog.InfoS("the reflector says something")
		close(said)
		for {
			select {
			case <-stop:
				return
			default:
				klog.InfoS("the reflector says something")
			}
		}
	}()
	<-said
	var out testkit.Buffer
	l := &Log{Level: "warn", Format: "json"}
	_, err := l.Logger(&out)
	require.NoError(t, err)
	close(stop)
	<-stopped
	klog.InfoS("too low")
	klog.ErrorS(nil, "the watch failed", "kind", "Secret")
	klog.Background().WithName("reflector").WithValues("namespace", "lend").Error(nil, "named")
	require.NotContains(t, out.String(), "too low")
	log.Print("http: panic serving")
	require.Contains(t, out.String(), `"level":"WARN","msg":"http: panic serving"`)
	require.Contains(t, out.String(), `"level":"ERROR","msg":"the watch failed","kind":"Secret"`)
	require.Contains(t, out.String(), `"msg":"named","logger":"reflector","namespace":"lend"`)

	l.Level = "loud"
	_, err = l.Logger(&out)
	require.EqualError(t, err, `--log-level "loud": use debug, info, warn or error`)
}
