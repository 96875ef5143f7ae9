package operate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
)

// The command explains the pods of a file without access to a cluster. For a pod that the API server would create, it
// assumes that the pod's namespace is offloaded.
func TestPodsOfAFileAreExplainedWithoutACluster(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	f := explainPodFlags{kubeconfig: filepath.Join(folder, "none"), market: serve.Published{
		File: write("market.json", `{"at": "2026-01-01T00:00:00Z", "offers": [{"name": "milan", "provider": "milan"}]}`)}}
	f.file = write("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\n"+
		"spec: {containers: [{name: web, image: nginx, resources: {requests: {cpu: 1500m}}}]}\nstatus: {phase: Running}\n")
	worlds, err := f.worlds(t.Context(), "default", nil)
	require.NoError(t, err)
	require.Len(t, worlds, 1)
	w := worlds[0]
	w.Groups = []fleet.Snapshot{{Group: "std", Max: 2, Spec: &fleet.GroupSpec{Max: 2,
		InstanceSpec: fleet.InstanceSpec{ID: "std",
			Shape: corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("110")}}}}}
	require.Equal(t, "milan", w.Market.Offers[0].Provider)
	p := explain.OfPod(w)
	require.Equal(t, "default/web", p.Pod)
	require.Equal(t, explain.NoGroupFits, p.Reason)
	require.Contains(t, p.Groups[0].Message, "cpu")
	require.Len(t, p.Notes, 1)
	require.Contains(t, p.Notes[0], "the pod is read from a file")
	w.Groups[0].Spec.Shape["cpu"] = resource.MustParse("2")
	require.NotEqual(t, explain.NoGroupFits, explain.OfPod(w).Reason, "Liqo lets it on its nodes")
	require.Len(t, f.explained([]explain.World{w, w}), 2)

	f.market.File = ""
	worlds, err = f.worlds(t.Context(), "default", nil)
	require.NoError(t, err)
	require.Nil(t, worlds[0].Market)
	require.Contains(t, worlds[0].Notes[1], "the present offers (--market-file, or access to the cluster)")
	f.file = write("pod.yaml", "apiVersion: v1\nkind: Service")
	_, err = f.worlds(t.Context(), "default", nil)
	require.ErrorContains(t, err, "--file "+f.file+`: document 1: kind "Service"`)
	f.file = write("pod.yaml", "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: t}\ntemplate: {spec: {containers: "+
		"[{name: w}]}}\n")
	worlds, err = f.worlds(t.Context(), "default", nil)
	require.NoError(t, err)
	worlds[0].Groups = w.Groups
	require.Equal(t, explain.NoGroupFits, explain.OfPod(worlds[0]).Reason, "Liqo's webhook never sees it")
}

func configMap(namespace, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string]string{key: text}}
}

// The test checks the requests that `explain pod` sends to the cluster, and its notes about forbidden requests.
func TestExplainPodReportsForbiddenReads(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "1"}}
	event := func(name string, of *corev1.Pod) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: of.Name, UID: of.UID}}
	}
	earlier := pod.DeepCopy()
	earlier.UID = "0"
	written := time.Now().UTC().Format(time.RFC3339)
	kube := fake.NewClientset(pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		event("its", pod), event("of its predecessor", earlier), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ours", Labels: map[string]string{fleet.LabelGroup: "std"}}},
		configMap("kube-system", "cluster-autoscaler-status", "status", "nodeGroups: [] # of another one"),
		configMap("kube-system", "second-status", "status", "nodeGroups: []"),
		configMap("liqo-autoscaler", market.ConfigMapName("default"), "market.json",
			`{"at": "`+written+`", "offers": [{"name": "milan", "provider": "milan"}]}`))
	f := explainPodFlags{market: serve.Published{Namespace: serve.DefaultNamespace}, caStatus: "second-status"}
	w, err := f.read(t.Context(), kube, "default", "shop", "web-0")
	require.NoError(t, err)
	require.Empty(t, w.Notes)
	require.Equal(t, "shop", w.Namespace.Name)
	require.Len(t, w.Events, 1)
	require.Len(t, w.Nodes, 1)
	require.Equal(t, "ours", w.Nodes[0].Name)
	require.Equal(t, "nodeGroups: []", w.Status)
	require.Equal(t, "milan", w.Market.Offers[0].Provider)

	_, err = f.read(t.Context(), kube, "default", "shop", "web-1")
	require.EqualError(t, err, "no pod web-1 in namespace shop")

	w, err = f.read(t.Context(), kube, "edge", "shop", "web-0")
	require.NoError(t, err)
	require.Nil(t, w.Market)
	require.Equal(t, []string{"the current offers cannot be read: no market has been published: does a worker run?"},
		w.Notes)

	f.caNamespace = "elsewhere"
	for _, kind := range []string{"namespaces", "events", "nodes"} {
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
	require.Len(t, w.Notes, 5)
	require.Equal(t, []string{"namespace shop: forbidden", "the pod's events: forbidden",
		"the Nodes of the groups: forbidden"}, w.Notes[:3])
	require.Contains(t, w.Notes[3], `configmaps "second-status" not found`)
	require.Contains(t, w.Notes[4], "does a worker run?")

	kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	_, err = f.read(t.Context(), kube, "default", "shop", "web-0")
	require.EqualError(t, err, "read pod shop/web-0: forbidden")
}
