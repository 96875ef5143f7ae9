package config

import (
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// reservedLabel returns the reason for which a group must not set this label, or "".
func reservedLabel(key, value string) string {
	prefix, _, prefixed := strings.Cut(key, "/")
	switch {
	case key == fleet.LabelBalance:
		return ""
	case key == "kubernetes.io/hostname":
		return "is reserved: every node has its own; remove it"
	case prefixed && underDomain(prefix, "liqo.io"):
		return "is reserved: Liqo sets the labels under liqo.io; remove it"
	case prefixed && underDomain(prefix, "liqo-autoscaler.io"):
		return "is reserved: liqo-autoscaler sets the labels under liqo-autoscaler.io; remove it"
	case key == "type" && value == "virtual-kubelet":
		// CA does not count such nodes towards its resource limits (CA core/utils/utils.go).
		return "hides the node from Cluster Autoscaler's resource limits: use another key or value"
	}
	return ""
}

// reservedTaint returns the reason for which a group must not set this taint, or "". CA removes taints of node
// conditions from templates and treats startup taints as "not ready yet" (CA utils/taints/taints.go).
func reservedTaint(key string) string {
	prefix, _, prefixed := strings.Cut(key, "/")
	switch {
	case prefixed && underDomain(prefix, "liqo.io"):
		return "is reserved: Liqo sets the taints of its nodes; remove it"
	case prefix == "node.kubernetes.io" || prefix == "node.cloudprovider.kubernetes.io":
		return "is reserved: Kubernetes sets it by a node's condition; use a key of your own"
	case prefixed && underDomain(prefix, "cluster-autoscaler.kubernetes.io"),
		key == "ToBeDeletedByClusterAutoscaler", key == "DeletionCandidateOfClusterAutoscaler":
		return "is reserved: Cluster Autoscaler uses it; use a key of your own"
	}
	return ""
}

func underDomain(prefix, domain string) bool {
	return prefix == domain || strings.HasSuffix(prefix, "."+domain)
}
