// Package ca runs the real Cluster Autoscaler loop (1.33.0, see cmd) in a separate process and records each of its
// RPCs. CA calls a Proxy, which forwards the bytes unchanged and records each RPC as a Call.
package ca
