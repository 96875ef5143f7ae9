package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// bundled returns the values of a release with a bundled Temporal, which runs in the pod of the release. It enables
// the options that apply to a bundled Temporal. further contains additional values.
func bundled(further ...string) []string {
	return []string{"--set", strings.Join(append([]string{"temporal.address=", "temporal.bundled.enabled=true",
		"networkPolicy.enabled=true", "temporal.codec.secretName=codec"}, further...), ",")}
}

// container returns the container with that name.
func container(t *testing.T, pod corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	n := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == name })
	require.GreaterOrEqual(t, n, 0, name)
	return pod.Containers[n]
}

// TestBundledIsOnePod checks that a release with a bundled Temporal has only one pod. Its Services and policies
// select only this pod.
func TestBundledIsOnePod(t *testing.T) {
	objects := render(t, "plaintext", bundled("temporal.bundled.ui.enabled=true")...)
	require.Empty(t, all[appsv1.Deployment](objects))
	require.Empty(t, all[policyv1.PodDisruptionBudget](objects), "a budget of one pod only keeps its node from draining")
	set := one[appsv1.StatefulSet](t, objects, namespace, release)
	require.Equal(t, int32(1), *set.Spec.Replicas)
	one[corev1.Service](t, objects, namespace, set.Spec.ServiceName)
	pod := set.Spec.Template.Spec
	ports := map[string]string{} // maps names of ports to names of containers
	numbers := map[int32]bool{}
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			require.Empty(t, ports[p.Name], p.Name)
			require.False(t, numbers[p.ContainerPort], "the containers of a pod share its ports")
			ports[p.Name], numbers[p.ContainerPort] = c.Name, true
		}
	}
	require.Equal(t, map[string]string{"grpc": "grpcserver", "health": "worker", "metrics": "worker",
		"health-server": "grpcserver", "metrics-server": "grpcserver"}, ports, "nothing else is reached from outside")
	selected := func(selector map[string]string) {
		t.Helper()
		for key, value := range selector {
			require.Equal(t, value, set.Spec.Template.Labels[key])
		}
	}
	selected(set.Spec.Selector.MatchLabels)
	led := map[string]bool{}
	for _, s := range all[corev1.Service](objects) {
		selected(s.Spec.Selector)
		for _, p := range s.Spec.Ports {
			require.NotEmpty(t, ports[p.TargetPort.StrVal], p.TargetPort.StrVal)
			led[p.TargetPort.StrVal] = true
		}
	}
	require.Len(t, led, 3)
	policies := all[networkingv1.NetworkPolicy](objects)
	require.Len(t, policies, 1, "two would add up")
	selected(policies[0].Spec.PodSelector.MatchLabels)
}

// TestBinaryAcceptsTheBundledArguments checks that our binary accepts the arguments of the worker and the gRPC
// server. Both connect to the Temporal in the pod, and each probe, file and volume exists.
func TestBinaryAcceptsTheBundledArguments(t *testing.T) {
	objects := render(t, "plaintext", bundled("temporal.bundled.ui.enabled=true")...)
	pod := one[appsv1.StatefulSet](t, objects, namespace, release).Spec.Template.Spec
	var volumes, mounted []string
	for _, v := range pod.Volumes {
		require.NotContains(t, volumes, v.Name)
		volumes = append(volumes, v.Name)
		if v.ConfigMap != nil {
			one[corev1.ConfigMap](t, objects, namespace, v.ConfigMap.Name)
		}
	}
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			require.Contains(t, append(volumes, "data"), m.Name)
			mounted = append(mounted, m.Name)
		}
	}
	require.Subset(t, mounted, volumes)
	for _, name := range []string{"worker", "grpcserver"} {
		c := container(t, pod, name)
		require.Equal(t, "127.0.0.1:7233", flagValue(c, "--temporal-address"))
		require.Contains(t, c.Ports, corev1.ContainerPort{Name: c.ReadinessProbe.HTTPGet.Port.StrVal, Protocol: "TCP",
			ContainerPort: map[string]int32{"worker": 8081, "grpcserver": 8082}[name]})
		out, err := exec.CommandContext(t.Context(), tool(t, "LIQO_AUTOSCALER"),
			append(slices.Clone(c.Args), "--help")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.Contains(t, container(t, pod, "worker").Args, "--bundled-temporal", "it prepares Temporal, and looks at it")
}

// TestBundledPodIsRestricted checks that Pod Security's level restricted admits every container. Only the worker and
// the gRPC server may have the token of the account.
func TestBundledPodIsRestricted(t *testing.T) {
	objects := render(t, "plaintext", bundled("temporal.bundled.ui.enabled=true")...)
	pod := one[appsv1.StatefulSet](t, objects, namespace, release).Spec.Template.Spec
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.False(t, *pod.AutomountServiceAccountToken)
	var withToken []string
	for _, c := range pod.Containers {
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
		require.False(t, c.Resources.Requests.Memory().IsZero())
		require.False(t, c.Resources.Limits.Memory().IsZero())
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "token" }) {
			withToken = append(withToken, c.Name)
		}
	}
	require.Equal(t, []string{"worker", "grpcserver"}, withToken)
	require.Len(t, all[corev1.ServiceAccount](objects), 2, "the pod's and the renewal's")
	subjects := []rbacv1.Subject{}
	for _, b := range all[rbacv1.RoleBinding](objects) {
		subjects = append(subjects, b.Subjects...)
	}
	for _, b := range all[rbacv1.ClusterRoleBinding](objects) {
		require.Len(t, b.Subjects, 1)
		subjects = append(subjects, b.Subjects...)
	}
	for _, s := range subjects {
		require.Contains(t, []string{pod.ServiceAccountName, release + "-renewal"}, s.Name)
	}
}

// TestBundledTemporal checks the container of the Temporal server. Its image has the version with which the suites
// run, and the server does not listen outside the pod.
func TestBundledTemporal(t *testing.T) {
	objects := render(t, "plaintext", bundled()...)
	c := container(t, one[appsv1.StatefulSet](t, objects, namespace, release).Spec.Template.Spec, "temporal")
	source, err := os.ReadFile("../e2e/lab/temporal.go")
	require.NoError(t, err)
	version := regexp.MustCompile(`temporalServerVersion = "v([\d.]+)"`).FindSubmatch(source)
	require.NotNil(t, version)
	require.Equal(t, "temporalio/server:"+string(version[1]), c.Image)
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	require.Equal(t, "sqlite", env["DB"])
	require.Equal(t, "1", env["NUM_HISTORY_SHARDS"])
	require.Equal(t, "127.0.0.1", env["BIND_ON_IP"])
	for _, name := range []string{"USER", "HOME"} { // without cgo, Go's user.Current needs them if the user has no name
		require.NotEmpty(t, env[name])
	}
	for _, name := range []string{"DBNAME", "VISIBILITY_DBNAME"} {
		require.Regexp(t, `^/var/lib/temporal/[a-z]+-1\.31\.db$`, env[name], "the name has the schema")
	}
	require.GreaterOrEqual(t, c.Resources.Limits.Memory().Value(), int64(1<<30))
}

// TestBundledUIListensOnlyInThePod checks that the web UI listens only in the pod, and that it answers no requests of
// other web pages. The command of the container was tried with UI server 2.42.1, whose config folder is relative to
// --root.
func TestBundledUIListensOnlyInThePod(t *testing.T) {
	objects := render(t, "plaintext", bundled("temporal.bundled.ui.enabled=true")...)
	c := container(t, one[appsv1.StatefulSet](t, objects, namespace, release).Spec.Template.Spec, "ui")
	require.Equal(t, "./ui-server --root / --config etc/temporal-ui --env ui start", strings.Join(c.Command, " "))
	var config struct {
		Host string `json:"host"`
		Cors struct {
			AllowOrigins []string `json:"allowOrigins"`
		} `json:"cors"`
	}
	text := one[corev1.ConfigMap](t, objects, namespace, release+"-temporal").Data["ui.yaml"]
	require.NoError(t, yaml.Unmarshal([]byte(text), &config))
	require.Equal(t, "127.0.0.1", config.Host)
	require.Equal(t, []string{"http://localhost:8080", "http://127.0.0.1:8080"}, config.Cors.AllowOrigins)
	require.NotContains(t, one[corev1.ConfigMap](t, render(t, "plaintext", bundled()...), namespace,
		release+"-temporal").Data, "ui.yaml")
}

// TestBundledVolumeMayBeAnEmptyDir checks the volume claim for Temporal's data, and the emptyDir that can replace it.
func TestBundledVolumeMayBeAnEmptyDir(t *testing.T) {
	set := one[appsv1.StatefulSet](t, render(t, "plaintext",
		bundled("temporal.bundled.persistence.storageClassName=fast")...), namespace, release)
	require.Len(t, set.Spec.VolumeClaimTemplates, 1)
	claim := set.Spec.VolumeClaimTemplates[0]
	require.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, claim.Spec.AccessModes)
	require.Equal(t, "fast", *claim.Spec.StorageClassName)
	require.NotContains(t, claim.Labels, "helm.sh/chart", "a claim's template cannot change with the version")

	set = one[appsv1.StatefulSet](t, render(t, "plaintext", bundled("temporal.bundled.persistence.enabled=false")...),
		namespace, release)
	require.Empty(t, set.Spec.VolumeClaimTemplates)
	require.True(t, slices.ContainsFunc(set.Spec.Template.Spec.Volumes,
		func(v corev1.Volume) bool { return v.Name == "data" && v.EmptyDir != nil }))
}

// TestBundledIsScraped checks that Prometheus scrapes both the worker and the gRPC server.
func TestBundledIsScraped(t *testing.T) {
	objects := render(t, "plaintext", bundled("metrics.serviceMonitor.enabled=true")...)
	var served, read []string
	for _, p := range one[corev1.Service](t, objects, namespace, release+"-metrics").Spec.Ports {
		served = append(served, p.Name)
	}
	for _, e := range one[serviceMonitor](t, objects, namespace, release).Spec.Endpoints {
		read = append(read, e.Port)
	}
	require.Equal(t, []string{"metrics", "metrics-server"}, served)
	require.Equal(t, served, read)
}

// TestOnlyABundledTemporalHasTheVolumeAlert checks that a release has the rule about the volume only if its Temporal
// is bundled.
func TestOnlyABundledTemporalHasTheVolumeAlert(t *testing.T) {
	monitored := "metrics.prometheusRule.enabled=true"
	rule := one[prometheusRule](t, render(t, "plaintext", bundled(monitored)...), namespace, release)
	require.Len(t, rule.Spec.Groups, 2)
	require.Len(t, rule.Spec.Groups[1].Rules, 1)
	require.Equal(t, 2, strings.Count(rule.Spec.Groups[1].Rules[0].Expr,
		`{namespace="liqo-autoscaler", persistentvolumeclaim="data-liqo-autoscaler-0"}`))
	require.Len(t, one[prometheusRule](t, render(t, "plaintext", "--set", monitored), namespace, release).Spec.Groups, 1)
}

// TestBundledReleaseHasTheDocumentedObjects checks that docs/install.md states the number of objects of a release
// with a bundled Temporal. The number includes the admission policies and the network policies.
func TestBundledReleaseHasTheDocumentedObjects(t *testing.T) {
	n := len(render(t, "plaintext", bundled()...))
	t.Logf("OBJECTS bundled %d, with a Temporal elsewhere %d, each without network policies %d and %d", n,
		len(render(t, "plaintext", "--set", "networkPolicy.enabled=true")),
		len(render(t, "plaintext", bundled("networkPolicy.enabled=false")...)), len(render(t, "plaintext")))
	require.LessOrEqual(t, n, 36)
	install, err := os.ReadFile("../docs/install.md")
	require.NoError(t, err)
	require.Contains(t, string(install), fmt.Sprintf("renders %d objects", n))
}

// TestValuesAgainstABundledTemporalAreRefused checks that the chart refuses values that contradict a bundled
// Temporal, and names the reason.
func TestValuesAgainstABundledTemporalAreRefused(t *testing.T) {
	for change, says := range map[string]string{
		"worker.replicaCount=2":                            "worker.replicaCount is 2: with temporal.bundled",
		"worker.replicaCount=0":                            "worker.replicaCount is 0",
		"grpcserver.replicaCount=2":                        "grpcserver.replicaCount is 2",
		"temporal.address=temporal:7233":                   "temporal.address is temporal:7233, and",
		"temporal.tls.enabled=true":                        "has neither TLS nor a login",
		"temporal.apiKey.secretName=x":                     "has neither TLS nor a login",
		"temporal.setup.enabled=true":                      "temporal.setup.enabled: its Job would wait",
		"worker.versioning.deploymentName=la":              "worker.versioning: with temporal.bundled there is one worker",
		"temporal.bundled.image.tag=1.33.0":                "this chart knows the database of 1.32 alone",
		"temporal.bundled.resources.limits.memory=512Mi":   `is "512Mi": Temporal needs 1Gi or more`,
		"temporal.bundled.persistence.accessModes={Other}": "accessModes",
		"temporal.bundled.replicas=2":                      "Additional property replicas is not allowed",
	} {
		out, err := template(t, append([]string{"--values", valuesFile("plaintext")}, bundled(change)...)...)
		require.Error(t, err, change)
		require.Contains(t, string(out), says)
	}
}

// bundledInstalls checks that a real API server accepts all objects of a release with a bundled Temporal. Pod
// Security's strictest level admits the pod, and the account has the rights of the worker and the gRPC server.
func bundledInstalls(t *testing.T, c *cluster) {
	args := append([]string{"--values", valuesFile("plaintext")}, bundled("temporal.bundled.ui.enabled=true")...)
	notes, err := c.run(t, tool(t, "HELM"), nil, append([]string{"install", release, chart, "-n", namespace}, args...)...)
	require.NoError(t, err, "%s", notes)
	defer func() {
		out, err := c.run(t, tool(t, "HELM"), nil, "uninstall", release, "-n", namespace)
		require.NoError(t, err, "%s", out)
	}()
	checkNotes(t, "plaintext", notes)
	require.Contains(t, notes, "for testing and development only")
	set := one[appsv1.StatefulSet](t, render(t, "plaintext", args[2:]...), namespace, release)
	pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	pod.Name = release + "-0"
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + pod.Name}}})
	_, err = c.kube.CoreV1().Pods(namespace).Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	account := release + "-worker"
	mayAll(t, c, account, map[string][]string{"cluster": {"liqo-tenant-x", ""}, "liqo": {"liqo"}})
	require.True(t, may(t, c, account, namespace, "get", "/configmaps", "liqo-autoscaler-market-default"))
	require.True(t, may(t, c, account, "kube-system", "get", "/namespaces", "kube-system"))
	mayNot(t, c, account, namespace, "get", "/configmaps", "liqo-autoscaler-nodegroups")
}
