package deploy_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// podSpecs returns the pod specs of all rendered objects, by the names of these objects.
func podSpecs(objects []object) map[string]corev1.PodSpec {
	specs := map[string]corev1.PodSpec{}
	for _, o := range objects {
		switch typed := o.typed.(any).(type) {
		case *appsv1.Deployment:
			specs[typed.Name] = typed.Spec.Template.Spec
		case *appsv1.StatefulSet:
			specs[typed.Name] = typed.Spec.Template.Spec
		case *batchv1.Job:
			specs[typed.Name] = typed.Spec.Template.Spec
		case *batchv1.CronJob:
			specs[typed.Name] = typed.Spec.JobTemplate.Spec.Template.Spec
		case *corev1.Pod:
			specs[typed.Name] = typed.Spec
		}
	}
	return specs
}

// liqoNode is a virtual node of Liqo, and ownNode is a node of the cluster itself. Both are in zone a.
var (
	liqoNode = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: map[string]string{
		"liqo.io/type": "virtual-node", "zone": "a"}}}
	ownNode = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"zone": "a"}}}
)

// mayRunOn reports whether the pod's required node affinity accepts the node. It uses the code of Kubernetes'
// scheduler.
func mayRunOn(t *testing.T, pod corev1.PodSpec, node corev1.Node) bool {
	t.Helper()
	ok, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: pod}).Match(&node)
	require.NoError(t, err)
	return ok
}

// TestPodsStayOffVirtualNodes checks that no pod of the chart may run on a virtual node, for any affinity that the
// values contain. The value keepOffVirtualNodes disables this.
func TestPodsStayOffVirtualNodes(t *testing.T) {
	for _, set := range valueSets {
		specs := podSpecs(render(t, set, "--set", "temporal.setup.enabled=true"))
		require.Greater(t, len(specs), 3)
		for name, pod := range specs {
			require.False(t, mayRunOn(t, pod, liqoNode), name)
			require.True(t, set != "plaintext" || mayRunOn(t, pod, ownNode), name)
		}
	}
	worker := func(set ...string) corev1.PodSpec {
		args := []string{}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		return podSpecs(render(t, "plaintext", args...))[release+"-worker"]
	}
	const required = "worker.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	zones := worker(
		required+"[0].matchExpressions[0].key=zone", required+"[0].matchExpressions[0].operator=In",
		required+"[0].matchExpressions[0].values={a}",
		required+"[1].matchExpressions[0].key=rack", required+"[1].matchExpressions[0].operator=Exists")
	require.False(t, mayRunOn(t, zones, liqoNode), "each term excludes virtual nodes")
	require.True(t, mayRunOn(t, zones, ownNode))
	require.False(t, mayRunOn(t, zones, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}), "the terms stay")
	apart := worker("worker.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1",
		"worker.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey=zone")
	require.NotNil(t, apart.Affinity.PodAntiAffinity)
	require.False(t, mayRunOn(t, apart, liqoNode))
	require.True(t, mayRunOn(t, worker("keepOffVirtualNodes=false"), liqoNode))
	require.Nil(t, worker("keepOffVirtualNodes=false").Affinity)
}

// TestPodsHaveThePriorityOfClusterAutoscaler checks that all pods of the chart have the priority class that Cluster
// Autoscaler's pods usually have, and none if the value is empty.
func TestPodsHaveThePriorityOfClusterAutoscaler(t *testing.T) {
	for class, args := range map[string][]string{
		"system-cluster-critical": nil,
		"":                        {"--set", "priorityClassName="},
		"own":                     {"--set", "priorityClassName=own"},
	} {
		specs := podSpecs(render(t, "plaintext", append(args, "--set", "temporal.setup.enabled=true")...))
		require.Greater(t, len(specs), 3)
		for name, pod := range specs {
			require.Equal(t, class, pod.PriorityClassName, name)
		}
	}
}

// TestReplicasAreSpreadOverNodes checks that by default the replicas of each Deployment are spread over nodes. The
// spread counts only the pods of this Deployment. It is a preference and never a requirement.
func TestReplicasAreSpreadOverNodes(t *testing.T) {
	objects := render(t, "plaintext")
	for _, d := range all[appsv1.Deployment](objects) {
		spread := d.Spec.Template.Spec.TopologySpreadConstraints
		require.Len(t, spread, 1, d.Name)
		require.Equal(t, corev1.ScheduleAnyway, spread[0].WhenUnsatisfiable)
		require.Equal(t, d.Spec.Selector.MatchLabels, spread[0].LabelSelector.MatchLabels)
	}
	for _, d := range all[appsv1.Deployment](render(t, "plaintext", "--set-json", "worker.topologySpreadConstraints=[]")) {
		turnedOff := d.Name == release+"-worker"
		require.Equal(t, turnedOff, len(d.Spec.Template.Spec.TopologySpreadConstraints) == 0, d.Name)
	}
}

// ports returns the numbers and names of the ports of the rules, sorted and without duplicates.
func ports(rules []networkingv1.NetworkPolicyEgressRule) (found []string) {
	for _, r := range rules {
		for _, p := range r.Ports {
			found = append(found, p.Port.String())
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestPodsReachOnlyTheConfiguredPorts checks that all pods of a release, including its Jobs, can reach the ports in the
// values and no other ports.
func TestPodsReachOnlyTheConfiguredPorts(t *testing.T) {
	policy := func(args ...string) *networkingv1.NetworkPolicy {
		t.Helper()
		objects := render(t, "plaintext", append([]string{"--set", "networkPolicy.enabled=true"}, args...)...)
		p := one[networkingv1.NetworkPolicy](t, objects, namespace, release+"-egress")
		require.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, p.Spec.PolicyTypes)
		for _, d := range all[appsv1.Deployment](objects) {
			for key, value := range p.Spec.PodSelector.MatchLabels {
				require.Equal(t, value, d.Spec.Template.Labels[key])
			}
		}
		return p
	}
	require.Equal(t, []string{"443", "53", "6443", "7233"}, ports(policy().Spec.Egress))
	require.Equal(t, []string{"443", "53", "5353", "6443", "7233"}, ports(policy("--set", "openshift=true").Spec.Egress))
	many := policy("--set", "temporal.address=temporal.example:443,networkPolicy.egress.apiServerPorts={16443},"+
		"offerServer.enabled=true,offerServer.url=https://offers.example:9010/x,offerServer.token.secretName=t,"+
		"worker.probeURL=http://example.com/", "--set-json",
		`networkPolicy.egress.extra=[{"ports":[{"port":3128,"protocol":"TCP"}]}]`,
		"--set-json", `networkPolicy.egress.apiServers=[{"ipBlock":{"cidr":"192.0.2.0/24"}}]`).Spec.Egress
	require.Equal(t, []string{"16443", "3128", "443", "53", "80", "9010"}, ports(many))
	require.Equal(t, "192.0.2.0/24", many[1].To[0].IPBlock.CIDR)

	objects := render(t, "plaintext", "--set", "networkPolicy.enabled=true,networkPolicy.egress.enabled=false")
	for _, p := range all[networkingv1.NetworkPolicy](objects) {
		require.NotContains(t, p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
	for _, on := range []string{"true", "false"} {
		policies := all[networkingv1.NetworkPolicy](render(t, "plaintext", bundled("networkPolicy.egress.enabled="+on)...))
		require.Len(t, policies, 1)
		require.Equal(t, on == "true", slices.Contains(policies[0].Spec.PolicyTypes, networkingv1.PolicyTypeEgress))
		if on == "true" {
			require.Equal(t, []string{"443", "53", "6443"}, ports(policies[0].Spec.Egress), "Temporal is in the pod")
		}
	}
}

// TestExtraObjectsArePartOfTheRelease checks that additional objects in the values become part of the release, whether
// they are given as objects or as templates.
func TestExtraObjectsArePartOfTheRelease(t *testing.T) {
	objects := render(t, "plaintext", "--set-json",
		`extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"{{ .Release.Namespace }}"}},`+
			`"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: {{ .Release.Namespace | quote }}}"]`)
	one[corev1.ConfigMap](t, objects, namespace, "a")
	one[corev1.ConfigMap](t, objects, namespace, "b")
}

// TestHelmTestPodIsAHook checks that the pod of `helm test` is a hook, and that our program accepts its arguments. A
// release with a bundled Temporal has no such pod, because the pod could not reach Temporal.
func TestHelmTestPodIsAHook(t *testing.T) {
	pods := all[corev1.Pod](render(t, "plaintext"))
	require.Len(t, pods, 1)
	require.Equal(t, "test", pods[0].Annotations["helm.sh/hook"])
	require.Equal(t, corev1.RestartPolicyNever, pods[0].Spec.RestartPolicy)
	require.Equal(t, release+"-worker", pods[0].Spec.ServiceAccountName, "which may read the offers")
	c := container(t, pods[0].Spec, "doctor")
	cmd := exec.CommandContext(t.Context(), tool(t, "LIQO_AUTOSCALER"), append(slices.Clone(c.Args), "--help")...)
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "liqo-autoscaler doctor")
	require.Empty(t, all[corev1.Pod](render(t, "plaintext", bundled()...)))
}

// requireRestricted fails the test when Pod Security's level restricted refuses the pod.
func requireRestricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	checks, err := policy.NewEvaluator(policy.DefaultChecks())
	require.NoError(t, err)
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range checks.EvaluatePod(level, &metav1.ObjectMeta{}, &pod) {
		require.True(t, result.Allowed, "%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
	}
}

// TestPodsAreRestricted checks that Pod Security's level restricted admits each pod of the chart.
func TestPodsAreRestricted(t *testing.T) {
	for _, set := range valueSets {
		for _, pod := range podSpecs(render(t, set, "--set", "temporal.setup.enabled=true")) {
			requireRestricted(t, pod)
		}
	}
	for _, pod := range podSpecs(render(t, "plaintext", bundled("temporal.bundled.ui.enabled=true")...)) {
		requireRestricted(t, pod)
	}
}

// TestImagesAreDocumented checks that docs/production.md names each image of both charts. Sites that mirror images need
// this list.
func TestImagesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/production.md")
	require.NoError(t, err)
	specs := podSpecs(render(t, "plaintext", bundled("temporal.bundled.ui.enabled=true")...))
	maps.Copy(specs, podSpecs(renderAgent(t, "full")))
	images := map[string]bool{}
	for _, pod := range specs {
		for _, c := range pod.Containers {
			image, _, _ := strings.Cut(c.Image, "@")
			repository := image
			if n := strings.LastIndex(image, ":"); n > strings.LastIndex(image, "/") {
				repository = image[:n]
			}
			images[repository] = true
			require.Contains(t, string(page), "`"+repository+"`")
		}
	}
	require.Len(t, images, 4)
}
