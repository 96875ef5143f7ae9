// Package explain explains why a pending pod has no node, and the state of an instance. It makes no requests: its
// callers read the input.
package explain
