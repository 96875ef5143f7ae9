// Package alerts_test checks the chart's Prometheus rules and its Grafana dashboard with Prometheus' own rule engine,
// the documented metrics and the runbook. It is a separate module, so that no other code depends on Prometheus.
package alerts_test
