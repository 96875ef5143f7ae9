//go:build externalgrpc

package main

import (
	"net/http"
	"time"

	"k8s.io/autoscaler/cluster-autoscaler/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// serve answers /metrics and /health-check on the address, in the background. If it cannot listen, it only logs the
// error, because suites that run concurrently use the same address.
func serve(address string, health *metrics.HealthCheck) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", legacyregistry.Handler())
	mux.Handle("/health-check", health)
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		klog.Errorf("serve metrics on %s: %v", address, server.ListenAndServe())
	}()
}
