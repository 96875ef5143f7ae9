package operate

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
)

// The command reads the Events page by page, up to a bound. If the API server refuses, only this part of the output
// is replaced by a note.
func TestEventsAreReadInPages(t *testing.T) {
	kube, pages := fake.NewClientset(), 0
	more := func(int) string { return "" }
	kube.PrependReactor("list", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		require.Equal(t, "reason=TriggeredScaleUp", a.(clienttesting.ListAction).GetListRestrictions().Fields.String())
		pages++
		return true, &corev1.EventList{ListMeta: metav1.ListMeta{Continue: more(pages)},
			Items: make([]corev1.Event, eventsAtOnce)}, nil
	})
	events, err := triggers(t.Context(), kube)
	require.NoError(t, err)
	require.Len(t, events, eventsAtOnce)

	more = func(page int) string { return map[bool]string{true: "next"}[page < 4] }
	events, err = triggers(t.Context(), kube)
	require.NoError(t, err)
	require.Len(t, events, 3*eventsAtOnce)

	more = func(int) string { return "next" }
	events, err = triggers(t.Context(), kube)
	require.EqualError(t, err, "more than 10000 events exist, and only these were read")
	require.Len(t, events, eventsMost)

	kube.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", nil)
	})
	_, err = triggers(t.Context(), kube)
	require.True(t, apierrors.IsForbidden(err))
}

// Without access to a cluster, the command still explains the instance.
func TestInstanceIsExplainedWithoutACluster(t *testing.T) {
	i := explain.Instance{Name: "burst-towb8j-1"}
	triggered(t.Context(), filepath.Join(t.TempDir(), "none"), &i)
	require.Empty(t, i.TriggeredBy)
	require.Len(t, i.Notes, 1)
	require.Contains(t, i.Notes[0], "Cluster Autoscaler's events about pods for which it requested nodes: access to "+
		"the consumer cluster (--kubeconfig, KUBECONFIG or ~/.kube/config)")
}
