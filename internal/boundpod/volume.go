package boundpod

import corev1 "k8s.io/api/core/v1"

// labelProvider is the label in the node affinity of each volume that Liqo has provisioned on a provider (Liqo
// pkg/liqo-controller-manager/offloading/storageprovisioner/remoteprovisioner.go).
const labelProvider = "liqo.io/remote-cluster-id"

// ProviderOf returns the id of the provider on which the volume is, or "" for a volume of this cluster.
func ProviderOf(volume *corev1.PersistentVolume) string {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return ""
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == labelProvider && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				return e.Values[0]
			}
		}
	}
	return ""
}
