package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// eachContainer runs a test for each container of each set of values.
func eachContainer(t *testing.T, test func(t *testing.T, objects []object, pod corev1.PodSpec, c corev1.Container)) {
	for _, set := range valueSets {
		objects := render(t, set)
		for _, deployment := range all[appsv1.Deployment](objects) {
			pod := deployment.Spec.Template.Spec
			require.Len(t, pod.Containers, 1)
			t.Run(set+" "+pod.Containers[0].Name, func(t *testing.T) { test(t, objects, pod, pod.Containers[0]) })
		}
	}
}

// The binary accepts the arguments of every container. With --help it parses all flags and does nothing else.
func TestBinaryAcceptsEveryFlagOfTheChart(t *testing.T) {
	binary := tool(t, "LIQO_AUTOSCALER")
	eachContainer(t, func(t *testing.T, _ []object, _ corev1.PodSpec, c corev1.Container) {
		require.Equal(t, c.Name, c.Args[0], "the container is named after the command")
		require.Empty(t, c.Command, "the image's entrypoint is the binary")
		out, err := exec.CommandContext(t.Context(), binary, append(slices.Clone(c.Args), "--help")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "liqo-autoscaler "+c.Name)
		// The arguments contain each required flag.
		for _, line := range strings.Split(string(out), "\n") {
			if strings.Contains(line, "(required)") {
				flag := strings.Fields(line)[0]
				require.True(t, slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, flag+"=") }),
					"%s is missing", flag)
			}
		}
	})
}

func flagValue(c corev1.Container, flag string) string {
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}

// Each container listens on all ports that it declares. Probes and Services use only these ports.
func TestPortsOfProbesAndServicesExist(t *testing.T) {
	eachContainer(t, func(t *testing.T, objects []object, pod corev1.PodSpec, c corev1.Container) {
		flags := map[string]string{"health": "--health-listen", "metrics": "--metrics-listen", "grpc": "--listen",
			"https": "--listen"}
		ports := map[string]int32{}
		for _, port := range c.Ports {
			require.Equal(t, fmt.Sprintf(":%d", port.ContainerPort), flagValue(c, flags[port.Name]), port.Name)
			ports[port.Name] = port.ContainerPort
		}
		for name, flag := range flags {
			if name == "grpc" && c.Name != "grpcserver" || name == "https" && c.Name != "discovery" {
				continue
			}
			require.Equal(t, flagValue(c, flag) != "", ports[name] != 0, "port %s", name)
		}
		require.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path)
		require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			require.Contains(t, ports, probe.HTTPGet.Port.StrVal)
			require.Greater(t, probe.TimeoutSeconds, int32(1), "a look takes up to 0.9 s")
		}

		led := map[string]int{} // counts the Services by their target ports
		for _, service := range all[corev1.Service](objects) {
			if component := service.Spec.Selector["app.kubernetes.io/component"]; component == "" || component == c.Name {
				require.Contains(t, ports, service.Spec.Ports[0].TargetPort.StrVal)
				led[service.Spec.Ports[0].TargetPort.StrVal]++
			}
		}
		delete(ports, "health")
		require.Len(t, led, len(ports), "a Service for each port but health")
	})
}

// The ServiceMonitor selects only the Service for the metrics.
func TestServiceMonitorSelectsOnlyMetrics(t *testing.T) {
	objects := render(t, "certmanager")
	monitor := one[serviceMonitor](t, objects, namespace, release)
	require.Equal(t, "prometheus", monitor.Labels["release"])
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	require.NoError(t, err)
	for _, service := range all[corev1.Service](objects) {
		require.Equal(t, service.Name == release+"-metrics", selector.Matches(labels.Set(service.Labels)))
	}
	require.Equal(t, one[corev1.Service](t, objects, namespace, release+"-metrics").Spec.Ports[0].Name,
		monitor.Spec.Endpoints[0].Port)
}

// The rules and the dashboard in the chart are the files that deploy/alerts tests with Prometheus. The chart puts the
// selectors of the release into the rules.
func TestChartContainsTheTestedAlertsAndDashboard(t *testing.T) {
	objects := render(t, "certmanager")
	rule := one[prometheusRule](t, objects, namespace, release)
	require.Equal(t, "prometheus", rule.Labels["release"])
	file, err := os.ReadFile(filepath.Join(chart, "files/alerts.yaml"))
	require.NoError(t, err)
	var want prometheusRule
	require.NoError(t, yaml.UnmarshalStrict([]byte(ofRelease(
		`namespace="`+namespace+`", job="`+release+`-metrics", hub=~"(east)?"`, "autoscaling-east", string(file))), &want.Spec))
	require.Equal(t, want.Spec, rule.Spec)
	require.NotEmpty(t, rule.Spec.Groups[0].Rules)

	board := one[corev1.ConfigMap](t, objects, namespace, release+"-dashboard")
	require.Equal(t, "1", board.Labels["grafana_dashboard"])
	file, err = os.ReadFile(filepath.Join(chart, "files/dashboard.json"))
	require.NoError(t, err)
	require.JSONEq(t, string(file), board.Data["liqo-autoscaler.json"])

	require.Empty(t, all[prometheusRule](render(t, "plaintext")), "off by default")
}

// Every file that a flag names is in a mounted volume. Each mount refers to an existing volume, and each volume is
// mounted.
func TestEveryFileIsInAMountedVolume(t *testing.T) {
	eachContainer(t, func(t *testing.T, objects []object, pod corev1.PodSpec, c corev1.Container) {
		var mounted []string
		for _, mount := range c.VolumeMounts {
			mounted = append(mounted, mount.Name)
			require.True(t, slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }),
				mount.Name)
		}
		for _, volume := range pod.Volumes {
			require.Contains(t, mounted, volume.Name)
			if volume.ConfigMap != nil {
				one[corev1.ConfigMap](t, objects, namespace, volume.ConfigMap.Name)
			}
		}
		for _, arg := range c.Args[1:] {
			_, value, _ := strings.Cut(arg, "=")
			if strings.HasPrefix(value, "/") {
				require.True(t, slices.ContainsFunc(c.VolumeMounts,
					func(m corev1.VolumeMount) bool { return strings.HasPrefix(value, m.MountPath+"/") }),
					"%s lies in no volume", arg)
			}
		}
	})
}

// The pods need no access to the host, and do not write into their images.
func TestPodsNeedNoAccessToTheNode(t *testing.T) {
	eachContainer(t, func(t *testing.T, _ []object, pod corev1.PodSpec, c corev1.Container) {
		require.True(t, *pod.SecurityContext.RunAsNonRoot)
		require.Positive(t, *pod.SecurityContext.RunAsUser)
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
		require.Equal(t, c.Name != "discovery", *pod.AutomountServiceAccountToken)
		require.False(t, c.Resources.Requests.Cpu().IsZero())
		require.False(t, c.Resources.Limits.Memory().IsZero())
		require.True(t, c.Resources.Limits.Cpu().IsZero(), "a CPU limit only throttles")
	})
}

// A Deployment, its Service, its disruption budget and its network policy select the pods of one component. They do
// not select the pods of other components.
func TestSelectorsMatchOneComponent(t *testing.T) {
	for _, set := range valueSets {
		objects := render(t, set)
		deployments := all[appsv1.Deployment](objects)
		const component = "app.kubernetes.io/component"
		requireSelects := func(selector map[string]string, components ...string) {
			t.Helper()
			var selected []string
			for _, d := range deployments {
				if labels.SelectorFromSet(selector).Matches(labels.Set(d.Spec.Template.Labels)) {
					selected = append(selected, d.Labels[component])
				}
			}
			require.ElementsMatch(t, components, selected)
			require.NotContains(t, selector, "helm.sh/chart", "a selector cannot change with the version")
		}
		var components []string
		for _, d := range deployments {
			components = append(components, d.Labels[component])
			requireSelects(d.Spec.Selector.MatchLabels, d.Labels[component])
		}
		require.NotEmpty(t, components)
		for _, s := range all[corev1.Service](objects) {
			if s.Labels[component] == "metrics" {
				requireSelects(s.Spec.Selector, components...)
			} else {
				requireSelects(s.Spec.Selector, s.Labels[component])
			}
		}
		for _, b := range all[policyv1.PodDisruptionBudget](objects) {
			requireSelects(b.Spec.Selector.MatchLabels, b.Labels[component])
		}
		for _, p := range all[networkingv1.NetworkPolicy](objects) {
			if p.Labels[component] == "" { // this policy selects the pods of all components
				requireSelects(p.Spec.PodSelector.MatchLabels, components...)
				continue
			}
			requireSelects(p.Spec.PodSelector.MatchLabels, p.Labels[component])
		}
	}
}

// When node groups or offers change, no pod restarts. The processes read the files with the groups and the offers
// again.
func TestNewGroupsAndOffersRestartNoPod(t *testing.T) {
	deployments := func(args ...string) []*appsv1.Deployment {
		return all[appsv1.Deployment](render(t, "plaintext", args...))
	}
	before := deployments()
	require.Equal(t, before, deployments("--set", "nodeGroups[0].max=5,offers[0].lendable.cpu=7"))
	require.NotEqual(t, before, deployments("--set", "liqo.namespace=elsewhere"))
}
