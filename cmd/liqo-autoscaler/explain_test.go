package main

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
)

func TestExplainMisuse(t *testing.T) {
	want := `want the pod as NAMESPACE/NAME, as in "liqo-autoscaler explain pod default/web-0"`
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	for says, all := range map[string][][]string{
		want:                                  {{"pod"}, {"pod", "web"}, {"pod", "a/"}, {"pod", "/b"}, {"pod", "a/b", "c"}},
		"want pod NAMESPACE/NAME":             {{}},
		`unknown command "node"`:              {{"node", "x"}},
		`--output "yaml": use text or json`:   {{"pod", "a/b", "-o", "yaml"}, {"instance", "a", "-o", "yaml"}, {"group", "a", "-o", "yaml"}},
		"accepts 1 arg(s), received 0":        {{"instance"}, {"group"}},
		"access to the consumer cluster (--k": {{"pod", "a/b", "--kubeconfig", nowhere}},
	} {
		for _, args := range all {
			_, _, err := command(t.Context(), append([]string{"explain"}, args...)...)
			require.ErrorContains(t, err, says, args)
		}
	}
}

func configMap(namespace, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string]string{key: text}}
}

// What explain pod reads in the cluster, and what it says of what it may not read.
func TestExplainPodReads(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "1"}}
	event := func(name string, of *corev1.Pod) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: of.Name, UID: of.UID}}
	}
	earlier := pod.DeepCopy()
	earlier.UID = "0"
	written := time.Now().UTC().Format(time.RFC3339)
	kube := fake.NewClientset(pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		event("its", pod), event("of its predecessor", earlier),
		configMap("kube-system", "cluster-autoscaler-status", "status", "nodeGroups: [] # of another one"),
		configMap("kube-system", "second-status", "status", "nodeGroups: []"),
		configMap("liqo-autoscaler", market.ConfigMapName("default"), "market.json",
			`{"at": "`+written+`", "offers": [{"name": "milan", "provider": "milan"}]}`))
	f := explainPodFlags{market: published{namespace: defaultNamespace}, caStatus: "second-status"}
	w, err := f.read(t.Context(), kube, "default", "shop", "web-0")
	require.NoError(t, err)
	require.Empty(t, w.Notes)
	require.Equal(t, "shop", w.Namespace.Name)
	require.Len(t, w.Events, 1)
	require.Equal(t, "nodeGroups: []", w.Status)
	require.Equal(t, "milan", w.Market.Offers[0].Provider)

	_, err = f.read(t.Context(), kube, "default", "shop", "web-1")
	require.EqualError(t, err, "no pod web-1 in namespace shop")

	w, err = f.read(t.Context(), kube, "edge", "shop", "web-0")
	require.NoError(t, err)
	require.Nil(t, w.Market)
	require.Equal(t, []string{"what is offered now: no market has been published: does a worker run?"}, w.Notes)

	f.caNamespace = "elsewhere"
	for _, kind := range []string{"namespaces", "events"} {
		kube.PrependReactor("*", kind, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("forbidden")
		})
	}
	_, err = kube.CoreV1().ConfigMaps("liqo-autoscaler").Update(t.Context(), configMap("liqo-autoscaler",
		market.ConfigMapName("default"), "market.json", `{"at": "2026-01-01T00:00:00Z"}`), metav1.UpdateOptions{})
	require.NoError(t, err)
	w, err = f.read(t.Context(), kube, "default", "shop", "web-0")
	require.NoError(t, err)
	require.Nil(t, w.Namespace)
	require.Len(t, w.Notes, 4)
	require.Equal(t, []string{"namespace shop: forbidden", "the pod's events: forbidden"}, w.Notes[:2])
	require.Contains(t, w.Notes[2], `configmaps "second-status" not found`)
	require.Contains(t, w.Notes[3], "does a worker run?")

	kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	_, err = f.read(t.Context(), kube, "default", "shop", "web-0")
	require.EqualError(t, err, "read pod shop/web-0: forbidden")
}
