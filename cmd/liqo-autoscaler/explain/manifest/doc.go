// Package manifest reads the pods that a file of Kubernetes manifests describes, as they are when Cluster Autoscaler
// sees them: those that the API server creates, and those that Cluster Autoscaler makes in its memory.
package manifest
