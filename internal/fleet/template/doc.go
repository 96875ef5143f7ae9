// Package template builds the template of a group's next node. It returns the Node that Cluster Autoscaler receives for
// the next node, and the differences between an existing Node and this template. It is pure. Code that reads or makes
// Nodes uses it; no state machine depends on it.
package template
