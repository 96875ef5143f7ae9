// Package explain explains why a pending pod has no node, and the state of an instance. Its input is read by its
// callers; it does no I/O.
package explain
