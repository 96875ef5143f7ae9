package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain/manifest"
)

const podSpec = "{containers: [{name: w, image: w, resources: {limits: {cpu: 900m}, requests: {memory: 1Gi}}}]}"

// template returns a PodTemplate of namespace demo.
func template(name string) string {
	return "---\napiVersion: v1\nkind: PodTemplate\nmetadata: {name: " + name + ", namespace: demo}\ntemplate: {spec: " +
		podSpec + "}\n"
}

func request(version, class, sets string) string {
	return "---\napiVersion: autoscaling.x-k8s.io/" + version + "\nkind: ProvisioningRequest\nmetadata: {name: r, " +
		"namespace: demo}\nspec: {provisioningClassName: " + class + ", podSets: [" + sets + "]}\n"
}

func buffer(spec string) string {
	return "---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: b, namespace: demo}\n" +
		"spec: {" + spec + "}\n"
}

const atomic = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

// Each kind of object has pods that reach Cluster Autoscaler in a certain way. Only pods that the API server creates
// have Liqo's toleration. If a pod has only limits, its requests are equal to them, as the API server sets them.
func TestPodsOfEachKindAreRead(t *testing.T) {
	workload := func(version, kind string) string {
		return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: a, namespace: demo}\nspec: {template: {" +
			"spec: " + podSpec + "}}\nstatus: {later: x}\n"
	}
	set := "{podTemplateRef: {name: t}, count: 4}"
	for name, tc := range map[string]struct {
		text, object string
		way          explain.Way
		together     int
		never        string
	}{
		"Pod": {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: demo}\nspec: " + podSpec, "",
			explain.Created, 0, ""},
		"Deployment":  {workload("apps/v1", "Deployment"), "Deployment demo/a", explain.Created, 0, ""},
		"StatefulSet": {workload("apps/v1", "StatefulSet"), "StatefulSet demo/a", explain.Created, 0, ""},
		"DaemonSet":   {workload("apps/v1", "DaemonSet"), "DaemonSet demo/a", explain.Created, 0, ""},
		"ReplicaSet":  {workload("apps/v1", "ReplicaSet"), "ReplicaSet demo/a", explain.Created, 0, ""},
		"Job":         {workload("batch/v1", "Job"), "Job demo/a", explain.Created, 0, ""},
		"ReplicationController": {workload("v1", "ReplicationController"), "ReplicationController demo/a", explain.Created, 0,
			""},
		"CronJob": {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a, namespace: demo}\nspec: {jobTemplate: {spec: " +
			"{template: {spec: " + podSpec + "}}}}", "CronJob demo/a", explain.Created, 0, ""},
		"List": {`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "PodTemplate", "metadata": {` +
			`"name": "a", "namespace": "demo"}, "template": {"spec": {"containers": [{"name": "w", "resources": {"requests": {` +
			`"cpu": "900m"}}}]}}}]}`, "PodTemplate demo/a", explain.InMemory, 0, ""},
		"PodTemplate": {"# a comment\n" + template("t"), "PodTemplate demo/t", explain.InMemory, 0, ""},
		"ProvisioningRequest": {request("v1", atomic, set) + template("t"),
			"ProvisioningRequest demo/r, spec.podSets[0], 4 x PodTemplate t", explain.InMemory, 4, ""},
		"ProvisioningRequest v1beta1": {template("t") + request("v1beta1", atomic, set),
			"ProvisioningRequest demo/r, spec.podSets[0], 4 x PodTemplate t", explain.InMemory, 4, ""},
		"of the class that only checks": {template("t") + request("v1", "check-capacity.autoscaling.x-k8s.io", set),
			"ProvisioningRequest demo/r, spec.podSets[0], 4 x PodTemplate t", explain.InMemory, 4, "only checks the nodes"},
		"of another class": {template("t") + request("v1", "queued-provisioning.gke.io", set),
			"ProvisioningRequest demo/r, spec.podSets[0], 4 x PodTemplate t", explain.InMemory, 4,
			"does not support the spec.provisioningClassName"},
		"CapacityBuffer": {template("t") + buffer("podTemplateRef: {name: t}, replicas: 2, limits: {cpu: 4}"),
			"CapacityBuffer demo/b, spec.podTemplateRef PodTemplate t", explain.DryRun, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := manifest.Read([]byte(tc.text))
			require.NoError(t, err)
			require.Len(t, all, 1)
			p := all[0]
			require.Equal(t, tc.object, p.Object)
			require.Equal(t, tc.way, p.Way)
			require.Equal(t, tc.together, p.Together)
			require.Contains(t, p.Never, tc.never)
			require.Equal(t, tc.never == "", p.Never == "", p.Never)
			require.Equal(t, tc.way == explain.Created, explain.ToleratesVirtualNodes(p.Pod))
			cpu := p.Pod.Spec.Containers[0].Resources.Requests["cpu"]
			require.Equal(t, "900m", cpu.String())
			require.Equal(t, "demo", p.Pod.Namespace)
			require.Equal(t, name == "DaemonSet", len(p.Pod.OwnerReferences) > 0)
		})
	}
}

// A buffer reserves capacity for a Deployment. The buffer's pod is separate from the pods of the Deployment. Only the
// pods of the Deployment pass Liqo's webhook.
func TestBufferIsSeparateFromItsWorkload(t *testing.T) {
	all, err := manifest.Read([]byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: demo}\n" +
		"spec: {template: {spec: " + podSpec + "}}\n" +
		buffer("scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 20")))
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, explain.Created, all[0].Way)
	require.Equal(t, "CapacityBuffer demo/b, spec.scalableRef Deployment web", all[1].Object)
	require.Equal(t, explain.DryRun, all[1].Way)
}

// A pod has limits for the whole pod. For each resource that no container requests, the limit becomes the pod's
// request.
func TestLimitsOfThePodBecomeRequests(t *testing.T) {
	all, err := manifest.Read([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {resources: {limits: {" +
		"cpu: 2, memory: 2Gi}}, containers: [{name: w, resources: {requests: {cpu: 1}}}]}"))
	require.NoError(t, err)
	requests := all[0].Pod.Spec.Resources.Requests
	require.NotContains(t, requests, "cpu")
	memory := requests["memory"]
	require.Equal(t, "2Gi", memory.String())
}

// A file whose pods cannot be determined is refused. The error contains the position and the remedy.
func TestUnreadableFileIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"": "it contains no object: want one of CapacityBuffer, CronJob, DaemonSet, Deployment, Job, Pod, PodTemplate, " +
			"ProvisioningRequest, ReplicaSet, ReplicationController, StatefulSet",
		template("t") + "---\napiVersion: v1\nkind: Service\n": `document 2: kind "Service" of apiVersion "v1" is not supported`,
		"apiVersion: apps/v1beta1\nkind: Deployment":           `kind "Deployment" of apiVersion "apps/v1beta1" is not supported`,
		"- x":   "document 1: got a list, want a mapping",
		"a: [":  "document 1: not YAML",
		"x: 1e": `kind "" of apiVersion ""`,
		"apiVersion: v1\nkind: Pod\nspec: {container: []}":                   "spec.container: unknown field",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nmetadata: {}":       "is given twice",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}":                     "Pod default/a: its pods have no containers",
		"apiVersion: v1\nkind: ReplicationController\nmetadata: {name: a}":   "its pods have no containers",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List}]":  "items[0]: a List in a List",
		"apiVersion: v1\nkind: List\nitems: [1]":                             "items[0]: kind",
		"apiVersion: v1\nkind: Pod\nspec: {overhead: {cpu: 1e999999999}}":    "spec.overhead.cpu: got",
		request("v1", atomic, ""):                                            "spec.podSets is empty",
		request("v1", atomic, "{podTemplateRef: {name: t}}") + template("t"): "spec.podSets[0].count is 0",
		request("v1", atomic, "{podTemplateRef: {name: x}, count: 1}") + template("t"): "ProvisioningRequest demo/r: " +
			"spec.podSets[0].podTemplateRef: the file does not contain PodTemplate demo/x: add it as a separate document",
		buffer("replicas: 1"):                                               "give exactly one of spec.podTemplateRef and",
		buffer("scalableRef: {kind: Secret, name: b}"):                      "the file does not contain Secret demo/b",
		strings.Repeat("---\n"+strings.TrimLeft(template("t"), "-\n"), 201): "it has more than 200 objects",
	} {
		_, err := manifest.Read([]byte(text))
		require.ErrorContains(t, err, says, text[:min(len(text), 200)])
	}
}

func TestFileSizeIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod.yaml")
	_, err := manifest.File(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	text := template("t")
	require.NoError(t, os.WriteFile(path, []byte(text+"#"+strings.Repeat("x", 1<<20-len(text)-1)), 0o600))
	all, err := manifest.File(path)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, os.WriteFile(path, []byte(text+"#"+strings.Repeat("x", 1<<20-len(text))), 0o600))
	_, err = manifest.File(path)
	require.ErrorContains(t, err, path+": it is larger than 1 MiB")
	require.NoError(t, os.WriteFile(path, []byte("a: ["), 0o600))
	_, err = manifest.File(path)
	require.ErrorContains(t, err, path+": document 1")
}

// Read does not panic for any text.
func FuzzRead(f *testing.F) {
	f.Add([]byte(request("v1", atomic, "{podTemplateRef: {name: t}, count: 4}") + template("t")))
	f.Add([]byte(buffer("podTemplateRef: {name: t}") + template("t")))
	f.Add([]byte("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {jobTemplate: {spec: {template: {" +
		"spec: " + podSpec + "}}}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := manifest.Read(text)
		for _, p := range all {
			require.NoError(t, err)
			explain.OfPod(explain.World{Pod: p.Pod, Planned: &p})
		}
	})
}
