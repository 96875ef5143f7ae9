// Package nodes is what backends do to a Node, the pods on it and objects of theirs through an API server alone,
// whatever has made the Node.
package nodes
