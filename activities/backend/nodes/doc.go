// Package nodes is what backends do to a Node and the pods on it through the consumer's API server alone, whatever has
// made the Node.
package nodes
