package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
)

// boundTo returns a claim whose volume is accessible only from Nodes with this label.
func boundTo(label, value string) explain.Claim {
	required := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn,
			Values: []string{value}}}}}}
	return explain.Claim{Name: "data-web-0", Volume: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: required}}}}
}

// A pod of a StatefulSet has a volume on a provider. The template of a group that uses several providers does not
// have the label of this provider, so Cluster Autoscaler never requests a node for the pod. The same applies if the
// volume is on this cluster. The page explains both.
func TestVolumeThatNoTemplateMatchesIsExplained(t *testing.T) {
	w := world()
	w.Claims = []explain.Claim{boundTo("liqo.io/remote-cluster-id", "milan")}
	p := explain.OfPod(w)
	require.Equal(t, explain.NoGroupFits, p.Reason)
	require.Contains(t, p.Groups[0].Message, "spec.volumes: the volume of claim data-web-0 is on provider milan, but "+
		"nodes of the group may be on other providers: use a group with `per: provider` for such pods")

	w.Groups[0].Spec.Provider = "milan"
	require.Equal(t, explain.NotRequestedYet, explain.OfPod(w).Reason)
	w.Groups[0].Spec.Provider = "rome"
	require.Equal(t, explain.NoGroupFits, explain.OfPod(w).Reason)

	w.Claims = []explain.Claim{boundTo("kubernetes.io/hostname", "worker-3")}
	require.Contains(t, explain.OfPod(w).Groups[0].Message, "is on a node of this cluster, and virtual nodes cannot use")
	w.Claims = []explain.Claim{{Name: "shared", Volume: &corev1.PersistentVolume{}}}
	w.Groups[0].Spec.Provider = ""
	require.Equal(t, explain.NotRequestedYet, explain.OfPod(w).Reason)
}
