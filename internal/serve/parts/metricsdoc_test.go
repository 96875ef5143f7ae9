package parts

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
	discovery "github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/derive"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

const metricsIntro = `# Metrics and health

` + "`make update`" + ` generates this page from the code. Every process serves ` + "`/metrics`" + ` at the address ` + "`--metrics-listen`" + ` (:9090), and two health checks at the address ` + "`--health-listen`" + ` (:8081):

| process | /healthz fails (only a restart helps) when | /readyz fails when |
|---|---|---|
| grpcserver | its refresh loop hangs | no worker polls the task queue, or the server has not read all groups within the last minute. The gRPC health protocol reports the same |
| worker | - | it does not poll yet, or Temporal does not answer |
| discovery | - | its database does not answer |
| agent | - | it has not listed its cluster yet, or cannot publish its offers |

The body of a failed check contains the reason. Each label has a limited number of values, so no label names an instance. For a single
instance see the log (key ` + "`instance`" + `), ` + "`liqo-autoscaler status`" + ` and the Temporal UI.

| metric | type | labels | process | meaning |
|---|---|---|---|---|
`

const metricsEnd = `
Prometheus adds the labels ` + "`namespace`" + ` (the Kubernetes namespace) and ` + "`job`" + `, by which the [alerts](alerts.md) select one installation. The
gRPC server and the worker add the label ` + "`hub`" + ` to each metric.

Every process also exports metrics of the Go runtime and the process (` + "`go_*`" + `, ` + "`process_*`" + `), and of the Temporal SDK (` + "`temporal_*`" + `). Other
applications of Temporal export the same ` + "`temporal_*`" + ` metrics. Those of workers have the label ` + "`task_queue`" + `; ` + "`temporal_request*`" + ` do not have
it. The label ` + "`exported_namespace`" + ` has the Temporal namespace (or the label ` + "`namespace`" + `, if Prometheus does not add a label of that name).

These metrics of the SDK are useful in a dashboard:

| metric | meaning |
|---|---|
| ` + "`temporal_request_failure_total{operation,status_code}`" + ` | calls to Temporal that failed |
| ` + "`temporal_workflow_endtoend_latency_seconds{workflow_type=\"ScaleOut\"}`" + ` | a scale-out from its start to Ready or Failed |
| ` + "`temporal_activity_schedule_to_start_latency_seconds`" + ` | the time for which a step waits for a worker; if it grows, add workers |
| ` + "`temporal_workflow_task_execution_failed_total`" + ` | more than 0 means a defect: workflows cannot continue with this version |
| ` + "`temporal_num_pollers`" + ` | 0 means that the worker does not poll |
`

func TestDocumentedMetricsAreTheOnesServed(t *testing.T) {
	const page = "../../../docs/metrics.md"
	got := metricsIntro + strings.Join(metricRows(t), "\n") + "\n" + metricsEnd
	golden.Check(t, page, got)
}

// metricRows returns the rows of the document for all our metrics. Each metric must have a value in this test.
func metricRows(t *testing.T) []string {
	t.Helper()
	of := map[string]string{}
	server, work := observed(t), observed(t)
	s, err := grpcserver.New(grpcserver.Options{Groups: &groups{},
		Specs:   []fleet.GroupSpec{{InstanceSpec: fleet.InstanceSpec{ID: "cpu"}, Max: 4, Spending: limited()}},
		Derived: &derive.Groups{}, Logger: quiet,
		Polled: func(context.Context) (error, error) { return nil, nil }})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	var options grpcserver.ServeOptions
	server.ObserveServer(s, &options)
	server.ObserveCertificate("missing.pem")
	_, err = options.Interceptors[0](t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/service/Refresh"},
		func(context.Context, any) (any, error) { return nil, nil })
	require.NoError(t, err)

	measured, err := work.measured(true)
	require.NoError(t, err)
	_, err = work.ObserveExpiry(expiringBackend{lives: map[string]account.Life{"milan": {End: time.Now()}}})
	require.NoError(t, err)
	left := []fleet.Orphan{{Attempt: fleet.Attempt{Provider: fleet.Provider{ID: "milan"}}}}
	work.Conditions.Set(map[string]string{"milan": ""}, left, time.Now())
	work.Pods.Set([]observer.PodsWaiting{{Provider: "milan", Verdict: boundpod.NotStarting, Count: 1}}, time.Now())
	work.Differing.Set("lca-cpu-e-1-1", "cpu", nil)
	var c client.Options
	measured(&c)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	counting := c.Interceptors[0].(interceptor.WorkerInterceptor)
	env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{counting}})
	env.RegisterActivityWithOptions(func(context.Context) (activities.SelectOutput, error) {
		return activities.SelectOutput{Failure: fleet.NewFailure(fleet.CodeNoCapacity, "milan", "", "full")}, nil
	}, activity.RegisterOptions{Name: activities.NameSelect})
	_, err = env.ExecuteActivity(activities.NameSelect)
	require.NoError(t, err)
	scaleOut := suite.NewTestWorkflowEnvironment()
	scaleOut.SetWorkerOptions(sdkworker.Options{
		Interceptors: []interceptor.WorkerInterceptor{c.Interceptors[1].(interceptor.WorkerInterceptor)}})
	scaleOut.RegisterWorkflowWithOptions(func(workflow.Context, fleet.DriverInput) (workflows.Outcome, error) {
		return workflows.Outcome{Phase: fleet.Ready}, nil
	}, workflow.RegisterOptions{Name: workflows.TypeScaleOut})
	scaleOut.ExecuteWorkflow(workflows.TypeScaleOut, fleet.DriverInput{})

	provider := observed(t)
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	each := map[string]corev1.ResourceList{"milan": amounts}
	agent.NewMetrics(registry.Namespace, provider.Registry).Measured(each, each, amounts)

	offers := observed(t)
	web, err := discovery.New(discovery.Options{Store: storetest.New(t), Writers: discovery.Writers{},
		Registry:  offers.Registry,
		Namespace: registry.Namespace})
	require.NoError(t, err)
	web.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/healthz", nil))

	rows := map[string]string{} // by the metrics' names
	for _, process := range []struct {
		name string
		*Monitor
	}{{"grpcserver", server}, {"worker", work}, {"agent", provider}, {"discovery", offers}} {
		gathered, err := process.Registry.Gather()
		require.NoError(t, err)
		for _, f := range gathered {
			if !strings.HasPrefix(f.GetName(), "liqo_autoscaler_") {
				continue
			}
			var labels []string
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels = append(labels, l.GetName())
			}
			name := f.GetName()
			rows[name] = fmt.Sprintf("| `%s` | %s | %s | %%s | %s |", name, strings.ToLower(f.GetType().String()),
				strings.Join(labels, ", "), f.GetHelp())
			of[name] = strings.TrimPrefix(of[name]+", "+process.name, ", ")
		}
	}
	of["liqo_autoscaler_build_info"] = "all"
	of["liqo_autoscaler_tls_certificate_expiry_timestamp_seconds"] += ", discovery"
	var out []string
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		out = append(out, fmt.Sprintf(rows[name], of[name]))
	}
	return out
}

func limited() *money.Spending {
	most := 1.0
	return &money.Spending{Hourly: money.SpendingLimit{Soft: &most}}
}

func observed(t *testing.T) *Monitor {
	t.Helper()
	o, err := Open(serve.ObserveFlags{}, quiet)
	require.NoError(t, err)
	return o
}
