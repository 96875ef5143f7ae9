package connect

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// said returns the log line of a workflow's logger. It creates the logger in the same way as the SDK.
func said(level slog.Level, say func(sdklog.Logger)) string {
	var out bytes.Buffer
	handler := slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string,
		a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return cli.DurationsInSeconds(groups, a)
	}})
	var log sdklog.Logger = temporalLog{log: slog.New(handler)}
	log = sdklog.With(log, "Namespace", "default", "TaskQueue", "liqo-autoscaler", "WorkerID", "1@vm@")
	log = sdklog.With(log, "WorkflowType", "ScaleOut", "WorkflowID", "scale-out/standard-t0-1", "RunID", "01a1", "Attempt",
		1)
	say(log)
	return strings.TrimSpace(out.String())
}

func TestLogLinesOfTemporalNameTheWorkflow(t *testing.T) {
	phase := func(l sdklog.Logger) {
		l.Info("phase", "group", "standard", "instance", "standard-t0-1", "attempt", 2, "from", "Peering", "event", "done",
			"phase", "Joining")
	}
	require.JSONEq(t, `{"level":"INFO","msg":"phase","workflow_id":"scale-out/standard-t0-1","group":"standard","instance":"standard-t0-1","attempt":2,
		"from":"Peering","event":"done","phase":"Joining"}`, said(slog.LevelInfo, phase))
	require.JSONEq(t, `{"level":"INFO","msg":"phase","workflow_id":"scale-out/standard-t0-1","group":"standard","instance":"standard-t0-1","attempt":2,
		"from":"Peering","event":"done","phase":"Joining","temporal":{"Namespace":"default","TaskQueue":"liqo-autoscaler",
		"WorkerID":"1@vm@",
		"WorkflowType":"ScaleOut","RunID":"01a1","Attempt":1}}`, said(slog.LevelDebug, phase))
	require.Equal(t, 1, strings.Count(said(slog.LevelDebug, phase), `"temporal"`),
		"one group, although With was called twice")
}

func TestLogLinesOfTemporalUseOurKeys(t *testing.T) {
	require.JSONEq(t, `{"level":"WARN","msg":"Activity error.","workflow_id":"scale-out/standard-t0-1","step":"Peer","error":"refused","duration":1.5}`,
		said(slog.LevelInfo, func(l sdklog.Logger) {
			l = sdklog.With(l, "ActivityID", "5", "ActivityType", "Peer", "Attempt", 3)
			l.Warn("Activity error.", "Error", errors.New("refused"), "duration", 1500*time.Millisecond)
		}))
	require.Empty(t, said(slog.LevelInfo, func(l sdklog.Logger) { l.Debug("hidden") }))
	require.Contains(t, said(slog.LevelInfo, func(l sdklog.Logger) { l.Error("odd", "key") }), `"!BADKEY":"key"`)
}
