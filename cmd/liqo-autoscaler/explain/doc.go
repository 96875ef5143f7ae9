// Package explain explains why a pending pod has no node, and the state of an instance. The callers read its input. It
// makes no requests itself.
package explain
