package alerts_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// day is in minutes, as the samples below are.
const day = 24 * 60

// healthy is what a working installation's processes serve, by metric: one sample a minute.
var healthy = map[string][]string{
	"liqo_autoscaler_view_fresh":                    {`{namespace="la", pod="grpcserver-1"} 1x3000`},
	"temporal_num_pollers":                          {`{poller_type="workflow_task", pod="worker-1"} 2x3000`},
	"temporal_workflow_task_execution_failed_total": {`{workflow_type="ScaleOut"} 0x3000`},
	"liqo_autoscaler_config_broken":                 {`{namespace="la", pod="grpcserver-1"} 0x3000`},
	"liqo_autoscaler_grpc_request_duration_seconds_count": {
		`{namespace="la", method="Refresh", code="OK"} 0+6x3000`, `{namespace="la", method="Refresh", code="Unavailable"} 0x3000`},
	"liqo_autoscaler_grpc_request_duration_seconds_bucket": {
		`{namespace="la", method="Refresh", le="0.1"} 0+6x3000`, `{namespace="la", method="Refresh", le="4"} 0+6x3000`,
		`{namespace="la", method="Refresh", le="+Inf"} 0+6x3000`},
	"temporal_activity_schedule_to_start_latency_seconds_bucket": {
		`{activity_type="Join", le="1"} 0+6x3000`, `{activity_type="Join", le="60"} 0+6x3000`,
		`{activity_type="Join", le="+Inf"} 0+6x3000`},
	"liqo_autoscaler_instances_failed":           {`{namespace="la", group="large", code="NoCapacity"} 0x3000`},
	"liqo_autoscaler_instances_stuck":            {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_instances_not_ready":        {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_nodes_different":            {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_pods_misjudged":             {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_group_dirty":                {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_group_unavailable":          {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_snapshot_age_seconds":       {`{namespace="la", group="large"} 2x3000`},
	"liqo_autoscaler_group_provision_time_short": {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_provider_condition":         {`{namespace="la", provider="milan", condition="Unreachable"} 0x3000`},
	"liqo_autoscaler_provider_credentials_expiry_timestamp_seconds": {
		`{namespace="la", provider="milan"} 8640000x3000`},
	"liqo_autoscaler_tls_certificate_expiry_timestamp_seconds": {`{namespace="la", pod="grpcserver-1"} 8640000x3000`},
	"liqo_autoscaler_group_offered_max_size":                   {`{namespace="la", group="large"} 5x3000`},
	"liqo_autoscaler_group_target_size":                        {`{namespace="la", group="large"} 2x3000`},
	"liqo_autoscaler_group_max_size":                           {`{namespace="la", group="large"} 8x3000`},
	"liqo_autoscaler_group_paused":                             {`{namespace="la", group="large"} 0x3000`},
	"liqo_autoscaler_spending_limit_reached": {
		`{namespace="la", group="large", period="hour", level="soft"} 0x3000`},
}

// scenes are, for each alert, what is served instead when it is right to fire; after how many minutes it does, and what
// it says. A metric without samples is served by nobody.
var scenes = map[string]struct {
	served  map[string][]string
	minutes int
	says    string
}{
	"LiqoAutoscalerServerMissing": {map[string][]string{"liqo_autoscaler_view_fresh": nil}, 5, "may have no server"},
	"LiqoAutoscalerWorkersMissing": {map[string][]string{
		"temporal_num_pollers": {`{poller_type="workflow_task", pod="worker-1"} 0x3000`}}, 5, "No worker"},
	"LiqoAutoscalerServerNotReady": {map[string][]string{
		"liqo_autoscaler_view_fresh": {`{namespace="la", pod="grpcserver-1"} 0x3000`}}, 5, "in la"},
	"LiqoAutoscalerWorkflowTasksFail": {map[string][]string{
		"temporal_workflow_task_execution_failed_total": {`{workflow_type="ScaleOut"} 0+1x3000`}}, 6, "ScaleOut"},
	"LiqoAutoscalerConfigBroken": {map[string][]string{
		"liqo_autoscaler_config_broken": {`{namespace="la", pod="grpcserver-1"} 1x3000`}}, 10, "has errors"},
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
			`{activity_type="Join", le="1"} 0+1x3000`, `{activity_type="Join", le="60"} 0+6x3000`,
			`{activity_type="Join", le="+Inf"} 0+6x3000`}}, 16, "Join"},
	"LiqoAutoscalerScaleOutsFail": {map[string][]string{ // deleted by CA, and failed again, every five minutes
		"liqo_autoscaler_instances_failed": {`{namespace="la", group="large", code="NoCapacity"} ` + often("1", "0", "0", "0", "0")}},
		30, "large keep failing with NoCapacity"},
	"LiqoAutoscalerInstancesStuck": {map[string][]string{
		"liqo_autoscaler_instances_stuck": {`{namespace="la", group="large"} 3x3000`}}, 30, "3 instances of node group large"},
	"LiqoAutoscalerInstancesNotReady": {map[string][]string{
		"liqo_autoscaler_instances_not_ready": {`{namespace="la", group="large"} 2x3000`}}, 15, "2 nodes of node group large"},
	"LiqoAutoscalerNodesDiffer": {map[string][]string{
		"liqo_autoscaler_nodes_different": {`{namespace="la", group="large"} 2x3000`}}, 15, "2 nodes of node group large"},
	"LiqoAutoscalerPodsMisjudged": {map[string][]string{
		"liqo_autoscaler_pods_misjudged": {`{namespace="la", group="large"} 3x3000`}}, 15, "3 pending pods select"},
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
		"liqo_autoscaler_provider_credentials_expiry_timestamp_seconds": {`{namespace="la", provider="milan"} 90000x3000`}},
		0, "milan expire in 1d"},
	"LiqoAutoscalerCertificateExpires": {map[string][]string{ // 0: the file cannot be read
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

// Each alert fires where it should, not before, and no other one does; in a working installation none does.
func TestAlertsFire(t *testing.T) {
	require.Empty(t, firing(t, healthy, 5*60), "in a working installation")
	var alerts []string
	for _, r := range alertRules(t) {
		alerts = append(alerts, r.Alert)
	}
	require.ElementsMatch(t, alerts, slices.Collect(maps.Keys(scenes)), "each alert has its scene")
	for alert, s := range scenes {
		t.Run(alert, func(t *testing.T) {
			served := maps.Clone(healthy)
			maps.Copy(served, s.served)
			if s.minutes > 0 {
				require.Empty(t, firing(t, served, s.minutes-1))
			}
			got := firing(t, served, s.minutes)
			require.Len(t, got, 1)
			require.Equal(t, alert, got[0].name)
			require.Contains(t, got[0].summary, s.says)
		})
	}
}

// often repeats samples.
func often(samples ...string) string { return strings.Repeat(strings.Join(samples, " ")+" ", 100) }
