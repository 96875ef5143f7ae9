package alerts_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// day is the number of minutes in a day. The samples below have an interval of one minute.
const day = 24 * 60

// The samples of the Temporal SDK's metrics begin with these label selectors. `drivers` is for a hub's workflows, and
// `making` is for its step Join.
const (
	drivers = `{namespace="la", task_queue="liqo-autoscaler-drivers", `
	making  = `{namespace="la", task_queue="liqo-autoscaler-making", activity_type="Join", `
)

// healthy contains the metrics of the processes of a working installation, with one sample each minute.
var healthy = map[string][]string{
	"liqo_autoscaler_view_fresh":                    {`{namespace="la", pod="grpcserver-1"} 1x3000`},
	"liqo_autoscaler_worker_polls":                  {`{namespace="la", pod="grpcserver-1"} 1x3000`},
	"temporal_workflow_task_execution_failed_total": {drivers + `workflow_type="ScaleOut"} 0x3000`},
	"liqo_autoscaler_config_broken":                 {`{namespace="la", pod="grpcserver-1"} 0x3000`},
	"liqo_autoscaler_grpc_request_duration_seconds_count": {
		`{namespace="la", method="Refresh", code="OK"} 0+6x3000`, `{namespace="la", method="Refresh", code="Unavailable"} 0x3000`},
	"liqo_autoscaler_grpc_request_duration_seconds_bucket": {
		`{namespace="la", method="Refresh", le="0.1"} 0+6x3000`, `{namespace="la", method="Refresh", le="4"} 0+6x3000`,
		`{namespace="la", method="Refresh", le="+Inf"} 0+6x3000`},
	"temporal_activity_schedule_to_start_latency_seconds_bucket": {
		making + `le="1"} 0+6x3000`, making + `le="60"} 0+6x3000`,
		making + `le="+Inf"} 0+6x3000`},
	"liqo_autoscaler_instances_failed":    {`{namespace="la", group="large", code="NoCapacity"} 0x3000`},
	"liqo_autoscaler_instances_stuck":     {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_instances_not_ready": {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_nodes_different":     {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_pods_overdue":        {`{namespace="la", provider="milan", verdict="NotStarting"} 0x3000`},
	"liqo_autoscaler_observer_last_round_timestamp_seconds": {`{namespace="la", pod="worker-1"} 0x3000`,
		`{namespace="la", pod="worker-2"} 0+60x3000`},
	"liqo_autoscaler_group_dirty":                {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_group_unavailable":          {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_snapshot_age_seconds":       {`{namespace="la", group="large"} 2x3000`},
	"liqo_autoscaler_group_provision_time_short": {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_provider_condition":         {`{namespace="la", provider="milan", condition="Unreachable"} 0x3000`},
	"liqo_autoscaler_provider_credentials_expiry_timestamp_seconds": {
		`{namespace="la", provider="milan"} 8640000x3000`},
	"liqo_autoscaler_provider_credentials_late_timestamp_seconds": {
		`{namespace="la", provider="milan"} 7430400x3000`},
	"liqo_autoscaler_tls_certificate_expiry_timestamp_seconds": {`{namespace="la", pod="grpcserver-1"} 8640000x3000`},
	"liqo_autoscaler_group_offered_max_size":                   {`{namespace="la", group="large"} 5x3000`},
	"liqo_autoscaler_group_target_size":                        {`{namespace="la", group="large"} 2x3000`},
	"liqo_autoscaler_group_max_size":                           {`{namespace="la", group="large"} 8x3000`},
	"liqo_autoscaler_group_paused":                             {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_spending_limit_reached": {
		`{namespace="la", group="large", period="hour", level="soft"} 0x3000`},
}

// scenes contains, for each alert, the metrics with which the alert must fire, the minutes until it fires, and a part
// of its summary. A metric with no samples is not served.
var scenes = map[string]struct {
	served  map[string][]string
	minutes int
	says    string
}{
	"LiqoAutoscalerServerMissing": {map[string][]string{"liqo_autoscaler_view_fresh": nil}, 5, "may have no server"},
	"LiqoAutoscalerWorkersMissing": {map[string][]string{
		"liqo_autoscaler_worker_polls": {`{namespace="la", pod="grpcserver-1"} 0x3000`}}, 5, "No worker"},
	"LiqoAutoscalerServerNotReady": {map[string][]string{
		"liqo_autoscaler_view_fresh": {`{namespace="la", pod="grpcserver-1"} 0x3000`}}, 5, "in la"},
	"LiqoAutoscalerWorkflowTasksFail": {map[string][]string{
		"temporal_workflow_task_execution_failed_total": {drivers + `workflow_type="ScaleOut"} 0+1x3000`}}, 6, "ScaleOut"},
	"LiqoAutoscalerConfigBroken": {map[string][]string{
		"liqo_autoscaler_config_broken": {`{namespace="la", pod="grpcserver-1"} 1x3000`}}, 10, "has errors"},
	"LiqoAutoscalerNotCalled": {map[string][]string{
		"liqo_autoscaler_grpc_request_duration_seconds_count": {
			`{namespace="la", method="Refresh", code="OK"} 6x3000`}}, 10, "has not called"},
	"LiqoAutoscalerPodsOverdue": {map[string][]string{
		"liqo_autoscaler_pods_overdue": {`{namespace="la", provider="milan", verdict="NotStarting"} 2x3000`}}, 5,
		"do not run there: NotStarting"},
	"LiqoAutoscalerCallsFail": {map[string][]string{
		"liqo_autoscaler_grpc_request_duration_seconds_count": {
			`{namespace="la", method="Refresh", code="OK"} 0+6x3000`,
			`{namespace="la", method="Refresh", code="Unavailable"} 0+1x3000`}}, 11, "Refresh"},
	"LiqoAutoscalerCallsSlow": {map[string][]string{
		"liqo_autoscaler_grpc_request_duration_seconds_bucket": {
			`{namespace="la", method="Refresh", le="0.1"} 0+5x3000`, `{namespace="la", method="Refresh", le="4"} 0+6x3000`,
			`{namespace="la", method="Refresh", le="+Inf"} 0+6x3000`}}, 16, "Refresh"},
	"LiqoAutoscalerWorkersTooFew": {map[string][]string{
		"temporal_activity_schedule_to_start_latency_seconds_bucket": {
			making + `le="1"} 0+1x3000`, making + `le="60"} 0+6x3000`,
			making + `le="+Inf"} 0+6x3000`}}, 16, "Join"},
	"LiqoAutoscalerScaleOutsFail": {map[string][]string{ // every five minutes a new instance fails
		"liqo_autoscaler_instances_failed": {`{namespace="la", group="large", code="NoCapacity"} ` + often("1", "0", "0", "0", "0")}},
		30, "large keep failing with NoCapacity"},
	"LiqoAutoscalerInstancesStuck": {map[string][]string{
		"liqo_autoscaler_instances_stuck": {`{namespace="la", group="large"} 3x3000`}}, 30, "3 instances of node group large"},
	"LiqoAutoscalerInstancesNotReady": {map[string][]string{
		"liqo_autoscaler_instances_not_ready": {`{namespace="la", group="large"} 2x3000`}}, 15, "2 nodes of node group large"},
	"LiqoAutoscalerObserverStopped": {map[string][]string{ // the leading worker has stopped, and no other leads
		"liqo_autoscaler_observer_last_round_timestamp_seconds": {`{namespace="la", pod="worker-1"} 0x3000`,
			`{namespace="la", pod="worker-2"} 0+60x5 300x3000`}}, 13, "no dead provider is noticed"},
	"LiqoAutoscalerNodesDiffer": {map[string][]string{
		"liqo_autoscaler_nodes_different": {`{namespace="la", group="large"} 2x3000`}}, 15, "2 nodes of node group large"},
	"LiqoAutoscalerGroupDirty": {map[string][]string{
		"liqo_autoscaler_group_dirty": {`{namespace="la", group="large"} 1x3000`}}, 15, "large"},
	"LiqoAutoscalerGroupUnavailable": {map[string][]string{
		"liqo_autoscaler_group_unavailable": {`{namespace="la", group="large"} 1x3000`}}, 10, "large cannot be read"},
	"LiqoAutoscalerGroupStale": {map[string][]string{
		"liqo_autoscaler_snapshot_age_seconds": {`{namespace="la", group="large"} 600x3000`}}, 5, "last read 10m"},
	"LiqoAutoscalerProvisionTimeShort": {map[string][]string{
		"liqo_autoscaler_group_provision_time_short": {`{namespace="la", group="large"} 1x3000`}}, 10, "large"},
	"LiqoAutoscalerProviderCondition": {map[string][]string{"liqo_autoscaler_provider_condition": {
		`{namespace="la", provider="milan", condition="Cordoned"} 1x3000`,
		`{namespace="la", provider="turin", condition="Unreachable"} 1x3000`}}, 15, "turin has condition Unreachable"},
	"LiqoAutoscalerCredentialsExpire": {map[string][]string{
		"liqo_autoscaler_provider_credentials_expiry_timestamp_seconds": {`{namespace="la", provider="milan"} 90000x3000`},
		"liqo_autoscaler_provider_credentials_late_timestamp_seconds":   {`{namespace="la", provider="milan"} 600x3000`}},
		11, "milan expire in 1d 0h 49m 0s"},
	"LiqoAutoscalerCertificateExpires": {map[string][]string{ // zero means that the file cannot be read
		"liqo_autoscaler_tls_certificate_expiry_timestamp_seconds": {`{namespace="la", pod="grpcserver-1"} 0x3000`}},
		10, "grpcserver-1"},
	"LiqoAutoscalerNothingOffered": {map[string][]string{
		"liqo_autoscaler_group_offered_max_size": {`{namespace="la", group="large"} 2x3000`}}, 30, "another node of large"},
	"LiqoAutoscalerSpendingLimit": {map[string][]string{"liqo_autoscaler_spending_limit_reached": {
		`{namespace="la", group="large", period="hour", level="soft"} 1x3000`}}, 10, "large has reached its soft limit"},
	"LiqoAutoscalerGroupPaused": {map[string][]string{
		"liqo_autoscaler_group_paused":           {`{namespace="la", group="large"} 1x3000`},
		"liqo_autoscaler_group_offered_max_size": {`{namespace="la", group="large"} 2x3000`}}, day, "large has been paused"},
}

// For each alert, the metrics of our installation have the fault of its scene, and the other applications in the same
// Prometheus are healthy. The alert then fires after the expected time, and no other alert fires. If only the other
// applications have the fault, the alert does not fire.
func TestEachAlertFiresAloneInItsScene(t *testing.T) {
	var alerts []string
	for _, r := range alertRules(t) {
		alerts = append(alerts, r.Alert)
	}
	require.ElementsMatch(t, alerts, slices.Collect(maps.Keys(scenes)), "each alert has its scene")
	ofTheChart := rendered(t)
	require.Empty(t, firing(t, ruleFile, together(ours.serves(healthy), south.serves(healthy), near.serves(healthy)),
		5*60), "all are well")
	for alert, s := range scenes {
		troubled := maps.Clone(healthy)
		maps.Copy(troubled, s.served)
		fires := func(t *testing.T, file string, neighbours ...map[string][]string) {
			got := firing(t, file, together(append(neighbours, ours.serves(troubled))...), s.minutes)
			require.Len(t, got, 1)
			require.Equal(t, alert, got[0].name)
			require.Contains(t, got[0].summary, s.says)
		}
		t.Run(alert, func(t *testing.T) {
			fires(t, ofTheChart, billing.serves(healthy), west.serves(healthy), south.serves(healthy),
				near.serves(healthy))
			require.Empty(t, firing(t, ofTheChart, together(ours.serves(healthy), billing.serves(troubled),
				west.serves(troubled), south.serves(troubled), near.serves(troubled)), s.minutes))
			if alert == "LiqoAutoscalerServerMissing" { // only the chart's rules detect one missing server of several
				fires(t, ruleFile, billing.serves(healthy))
				return
			}
			fires(t, ruleFile, billing.serves(healthy), west.serves(healthy))
			if trouble := billing.serves(s.served); len(trouble) > 0 {
				require.Empty(t, firing(t, ruleFile, together(ours.serves(healthy), trouble), s.minutes))
			}
		})
	}
}

// often repeats the samples.
func often(samples ...string) string { return strings.Repeat(strings.Join(samples, " ")+" ", 100) }
