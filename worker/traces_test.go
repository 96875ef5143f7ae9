package worker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/traced"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// calling is a backend that first sends a request to an API server, as the real backend does.
type calling struct {
	backend.Backend
	get func(context.Context) error
}

func (c calling) Establish(ctx context.Context, p fleet.Provider, progress backend.Progress) error {
	if err := c.get(ctx); err != nil {
		return err
	}
	return c.Backend.Establish(ctx, p, progress)
}

func (c calling) Join(ctx context.Context, spec backend.NodeSpec, progress backend.Progress) (backend.Node, error) {
	if err := c.get(ctx); err != nil {
		return backend.Node{}, err
	}
	return c.Backend.Join(ctx, spec, progress)
}

// api starts an API server, and returns a function that sends it a request.
func api(t *testing.T) func(context.Context) error {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	web := &http.Client{Transport: traced.Transport(http.DefaultTransport)}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		answer, err := web.Do(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
}

// lineages waits until the parents of each span and the wanted spans exist. It returns the lineages (the names of a
// span and of its ancestors) of all spans.
func lineages(t *testing.T, spans *tracetest.InMemoryExporter, want ...string) (lines []string) {
	t.Helper()
	testkit.Until(t, waitLimit, "the spans are there", func() error {
		var all []testkit.Span
		for _, s := range spans.GetSpans() {
			span := testkit.Span{Trace: s.SpanContext.TraceID().String(), ID: s.SpanContext.SpanID().String(), Name: s.Name}
			if s.Parent.IsValid() {
				span.Parent = s.Parent.SpanID().String()
			}
			all = append(all, span)
		}
		lines = testkit.Lineages(all)
		orphan := func(line string) bool { return strings.HasPrefix(line, "?") }
		missing := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return slices.Contains(lines, line) })
		if len(missing) > 0 || slices.ContainsFunc(lines, orphan) {
			return fmt.Errorf("missing: %s\nthere are: %s", strings.Join(missing, "\n"), strings.Join(lines, "\n"))
		}
		return nil
	})
	return lines
}

// wrote reports whether a workflow's history contains a trace header or a trace field.
func (s *scene) wrote(id string) (header, field bool) {
	s.t.Helper()
	events := s.temporal.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err)
		text, err := protojson.Marshal(e)
		require.NoError(s.t, err)
		header, field = header || says(text, "_tracer-data"), field || says(text, `"trace":`)
	}
	return header, field
}

// A worker without traces writes no trace data into any history. Then, in the middle of a scale-out, a worker with
// traces takes over. The running work continues, and from then on all effects of a call of Cluster Autoscaler belong
// to the trace of that call. Work without a call has its own trace.
func TestOneScaleOutIsOneTrace(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	s.knobs(0, sim.Knobs{Hang: backend.StageNode})
	o, err := options(s.temporal, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(t, err)
	stop := s.start(o)
	t.Cleanup(s.replay)
	s.configure()
	early := s.grow(1).Instances[0].Name
	s.counts("its node is on its way", func(c sim.Counts) bool { return c.Slices == 1 })
	stop()
	group, provider := workflows.NodeGroupID(s.spec.ID), workflows.ProviderID(s.providers[0])
	for _, id := range []string{group, provider, workflows.PeeringID(s.providers[0]), workflows.ScaleOutID(early)} {
		header, field := s.wrote(id)
		require.False(t, header || field, "%s: header %t, field %t", id, header, field)
	}

	exporter := tracetest.NewInMemoryExporter()
	spans := trace.NewTracerProvider(trace.WithSyncer(exporter))
	tracing, err := flow.NewTracing(spans)
	require.NoError(t, err)
	s.tracing = []interceptor.WorkerInterceptor{tracing}
	o.Temporal, err = client.Dial(client.Options{HostPort: devServer, Logger: quiet(),
		Interceptors: []interceptor.ClientInterceptor{tracing}})
	require.NoError(t, err)
	t.Cleanup(o.Temporal.Close)
	o.Backend = calling{o.Backend, api(t)}
	s.knobs(0, sim.Knobs{})
	s.start(o)
	s.allIn(fleet.Ready, 1)
	s.release(early)
	s.allIn("", 0)
	s.provider(0, "its peering is removed", func(p fleet.ProviderSnapshot) bool { return p.Phase == fleet.Absent })
	lineages(t, exporter, "StartWorkflow:ScaleIn > RunActivity:Drain",
		"StartWorkflow:Unpeering > RunActivity:RemovePeering")

	groups := flow.NewGroups(o.Temporal, s.hub, s.queue)
	ctx, root := spans.Tracer("test").Start(s.ctx, "IncreaseSize")
	at, err := groups.Grow(ctx, s.spec.ID, 1, 0, fleet.Position{})
	root.End()
	later := s.shows(at, err).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	out := "IncreaseSize > StartWorkflow:ScaleOut > RunActivity:"
	lines := lineages(t, exporter, "IncreaseSize > UpdateWorkflow:grow", out+"Discover", out+"Select",
		out+"Join > HTTP GET",
		out+"Select > StartWorkflow:Peering > RunActivity:Establish > HTTP GET")
	require.NotContains(t, lines, "StartWorkflow:ScaleOut")
	header, _ := s.wrote(workflows.ScaleOutID(later))
	_, field := s.wrote(group)
	require.True(t, header && field, "header %t, field %t: it is written otherwise than was looked for above", header,
		field)

	ctx, root = spans.Tracer("test").Start(s.ctx, "DeleteNodes")
	_, err = groups.Release(ctx, s.spec.ID, []string{later}, fleet.Position{})
	root.End()
	require.NoError(t, err)
	s.empty()
	in := "DeleteNodes > StartWorkflow:ScaleIn > RunActivity:"
	lineages(t, exporter, "DeleteNodes > UpdateWorkflow:release", in+"Drain", in+"Return")
}
