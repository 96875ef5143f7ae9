// Package template says what a node of a group is like before there is one. It answers what Cluster Autoscaler is told
// of the next node, and in what a Node that exists is not as was told.
// It is pure, and for whoever reads or makes Nodes; no machine decides by it.
package template
