// Package manifest reads the pods that a file of Kubernetes manifests describes, in the form in which Cluster
// Autoscaler sees them. The API server would create some of these pods. Cluster Autoscaler creates the other pods only
// in its memory.
package manifest
