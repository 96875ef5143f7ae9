// Package ca runs the real Cluster Autoscaler loop (1.33.0, see cmd) in a process of its own, and records every RPC it
// makes: CA talks to a Proxy, which passes the bytes on untouched and keeps a Call of each.
package ca
