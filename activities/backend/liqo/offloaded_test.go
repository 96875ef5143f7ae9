package liqo

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// If a bound volume has Liqo's node affinity, Volumes counts it for the provider that the affinity names. It does not
// count other volumes.
func TestBoundVolumesCountForTheirProvider(t *testing.T) {
	t.Parallel()
	volume := func(name, label string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "claim-" + name},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label,
					Operator: corev1.NodeSelectorOpIn, Values: []string{"milan"}}}}}}}},
			Status: corev1.PersistentVolumeStatus{Phase: phase}}
	}
	c := newClusters(t, peered(volume("a", "liqo.io/remote-cluster-id", corev1.VolumeBound),
		volume("released", "liqo.io/remote-cluster-id", corev1.VolumeReleased),
		volume("local", "kubernetes.io/hostname", corev1.VolumeBound),
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "anywhere"}}), nil)
	claims, err := c.Volumes(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"milan": {"shop/claim-a"}}, claims)
}

func TestKeepSetsCAsAnnotation(t *testing.T) {
	t.Parallel()
	node := readyNode("lca-g-abc-1-1", "1")
	c := newClusters(t, peered(stampedNode()...), nil)
	require.NoError(t, c.Keep(t.Context(), someAttempt(1), true))
	require.NoError(t, c.watch.Get(t.Context(), keyOf(node), node))
	require.Equal(t, "true", node.Annotations[backend.AnnotationScaleDown])
	require.NoError(t, c.Keep(t.Context(), someAttempt(1), false))
	require.NoError(t, c.watch.Get(t.Context(), keyOf(node), node))
	require.NotContains(t, node.Annotations, backend.AnnotationScaleDown)
	require.NoError(t, c.Keep(t.Context(), someAttempt(2), true), "it does not exist")
}

// The backend visits only pods with Liqo's label. It removes an ended pod once, and only in the state in which the pod
// was listed.
func TestEndedOffloadedPodsAreRemovedOnce(t *testing.T) {
	t.Parallel()
	pod := func(name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
	}
	c := newClusters(t, peered(pod("here", nil), pod("there", map[string]string{"liqo.io/shadowPod": "true"})), nil)
	var seen []*corev1.Pod
	require.NoError(t, c.OffloadedPods(t.Context(), func(p *corev1.Pod) { seen = append(seen, p) }))
	require.Len(t, seen, 1)
	require.Equal(t, "there", seen[0].Name)
	older := seen[0].DeepCopy()
	older.ResourceVersion = "1"
	require.True(t, apierrors.IsConflict(c.RemoveEndedPod(t.Context(), older)))
	require.NoError(t, c.RemoveEndedPod(t.Context(), seen[0]))
	require.NoError(t, c.RemoveEndedPod(t.Context(), seen[0]), "it is gone")
}
