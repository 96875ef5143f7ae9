// Package alerts_test checks the Prometheus rules and the Grafana dashboard of the chart. It uses Prometheus' own
// rule engine, the documented metrics and the runbook. It is a separate module, so that no other code depends on
// Prometheus.
package alerts_test
