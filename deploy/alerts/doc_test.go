// Package alerts_test holds the chart's Prometheus rules and its Grafana dashboard against Prometheus' own rule engine,
// the documented metrics and the runbook. It is a module of its own, so that nothing else depends on Prometheus.
package alerts_test
