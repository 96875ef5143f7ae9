// Package manifest reads the pods that a file of Kubernetes manifests describes, in the form in which Cluster
// Autoscaler sees them. The API server creates some of these pods, and Cluster Autoscaler makes the rest in its memory.
package manifest
