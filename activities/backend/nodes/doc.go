// Package nodes contains operations that several backends use and that need only an API server. These are operations
// on a Node, on its pods and on a backend's own objects. They work for the Nodes of every backend.
package nodes
