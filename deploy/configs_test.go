package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

// The code that reads the config files in the pods can parse the files in the rendered ConfigMaps.
func TestConfigFilesAreParsedByTheCode(t *testing.T) {
	for _, set := range valueSets {
		t.Run(set, func(t *testing.T) {
			objects := render(t, set)
			name := strings.TrimSuffix(one[appsv1.Deployment](t, objects, namespace, nameOf(set)+"-worker").Name, "-worker")
			groups, err := config.Parse([]byte(one[corev1.ConfigMap](t, objects, namespace,
				name+"-nodegroups").Data["nodegroups.yaml"]))
			require.NoError(t, err)
			worker := one[appsv1.Deployment](t, objects, namespace, name+"-worker").Spec.Template.Spec.Containers[0]
			require.Equal(t, groups.Hub, flagValue(worker, "--hub"), "server and worker are of one hub")
			if path := flagValue(worker, "--offers"); path != "" {
				offers, err := discovery.Parse([]byte(one[corev1.ConfigMap](t, objects, namespace,
					name+"-offers").Data[filepath.Base(path)]))
				require.NoError(t, err)
				require.NotEmpty(t, offers.Offers)
			}
		})
	}
}

func nameOf(set string) string {
	if set == "existing" {
		return "lender"
	}
	return release
}

// cloudConfig has the fields of the type that CA uses (cloudprovider/externalgrpc/externalgrpc_cloud_provider.go).
type cloudConfig struct {
	Address     string           `json:"address"`
	Key         string           `json:"key"`
	Cert        string           `json:"cert"`
	Cacert      string           `json:"cacert"`
	GRPCTimeout *metav1.Duration `json:"grpc_timeout"`
}

func readCloudConfig(t *testing.T, objects []object, set string) (c cloudConfig) {
	t.Helper()
	where := namespace
	if set == "existing" {
		where = "kube-system"
	}
	secret := one[corev1.Secret](t, objects, where, nameOf(set)+"-cloud-config")
	require.NoError(t, yaml.UnmarshalStrict([]byte(secret.StringData["cloud-config.yaml"]), &c))
	return c
}

// CA's config file contains a name of the Service as the address. The server's certificate contains this name, too.
func TestCloudConfig(t *testing.T) {
	for _, set := range valueSets {
		t.Run(set, func(t *testing.T) {
			objects := render(t, set)
			c := readCloudConfig(t, objects, set)
			service := one[corev1.Service](t, objects, namespace, nameOf(set))
			host := fmt.Sprintf("%s.%s.svc", service.Name, namespace)
			require.Equal(t, fmt.Sprintf("%s:%d", host, service.Spec.Ports[0].Port), c.Address)
			require.Equal(t, 5*time.Second, c.GRPCTimeout.Duration)
			require.Equal(t, set == "plaintext", c.Cert == "", "CA speaks plaintext when it has no cert")
			require.Equal(t, set == "plaintext", c.Key+c.Cacert == "")
			if set == "certmanager" {
				require.Contains(t, one[certificate](t, objects, namespace, release+"-grpcserver").Spec.DNSNames, host)
			}
		})
	}
}

// The certificate that cert-manager issues for CA contains the names that the server permits.
func TestCAsCertificateHasTheAllowedNames(t *testing.T) {
	for set, want := range map[string]string{"certmanager": "cluster-autoscaler", "existing": "ca.example.com,other",
		"plaintext": ""} {
		objects := render(t, set)
		server := one[appsv1.Deployment](t, objects, namespace, nameOf(set)+"-grpcserver").Spec.Template.Spec.Containers[0]
		require.Equal(t, want, flagValue(server, "--tls-allowed-names"))
		if set == "certmanager" {
			require.Equal(t, want, one[certificate](t, objects, namespace, release+"-client-tls").Spec.CommonName)
		}
	}
}

// cert-manager issues the certificates into the Secrets that the pods mount, each with the right usage. The authority
// that signs them belongs to this release, so it signs no certificates of other clients.
func TestCertificatesAreIssuedIntoTheMountedSecrets(t *testing.T) {
	objects := render(t, "certmanager")
	secrets := map[string]string{} // names of Secrets by usage
	for _, c := range all[certificate](objects) {
		if !c.Spec.IsCA {
			require.Len(t, c.Spec.Usages, 2)
			secrets[c.Spec.SecretName] = c.Spec.Usages[1]
			require.Equal(t, one[issuer](t, objects, namespace, release+"-ca").Name, c.Spec.IssuerRef.Name)
		}
	}
	require.Equal(t, map[string]string{release + "-grpcserver-tls": "server auth", release +
		"-discovery-tls": "server auth",
		release + "-client-tls": "client auth"}, secrets)
	authority := one[certificate](t, objects, namespace, release+"-ca")
	require.Equal(t, authority.Spec.SecretName, one[issuer](t, objects, namespace, release+"-ca").Spec.CA.SecretName)

	other := render(t, "existing", "--set",
		"tls.existingSecret=,tls.certManager.enabled=true,tls.certManager.issuerRef.name=x,"+
			"tls.certManager.issuerRef.kind=ClusterIssuer,tls.allowedNames={cluster-autoscaler}")
	require.Empty(t, all[issuer](other))
	require.Equal(t, "x", one[certificate](t, other, "kube-system", "lender-client-tls").Spec.IssuerRef.Name)
}

// The values file for CA's chart works with a release of our chart that has the default name.
func TestValuesForCAFitTheDefaultRelease(t *testing.T) {
	raw, err := os.ReadFile("ca/values.yaml")
	require.NoError(t, err)
	var values struct {
		CloudProvider string `json:"cloudProvider"`
		AutoDiscovery struct {
			ClusterName string `json:"clusterName"`
		} `json:"autoDiscovery"`
		ExtraVolumeSecrets map[string]struct {
			Name      string `json:"name"`
			MountPath string `json:"mountPath"`
		} `json:"extraVolumeSecrets"`
		ExtraArgs    map[string]any `json:"extraArgs"`
		ReplicaCount int            `json:"replicaCount"`

		SecurityContext          *corev1.PodSecurityContext  `json:"securityContext"`
		ContainerSecurityContext *corev1.SecurityContext     `json:"containerSecurityContext"`
		Resources                corev1.ResourceRequirements `json:"resources"`
		Affinity                 *corev1.Affinity            `json:"affinity"`
	}
	require.NoError(t, yaml.UnmarshalStrict(raw, &values))
	require.Equal(t, "externalgrpc", values.CloudProvider)
	require.NotEmpty(t, values.AutoDiscovery.ClusterName, "CA's chart renders nothing without it")
	require.False(t, mayRunOn(t, corev1.PodSpec{Affinity: values.Affinity}, liqoNode))
	require.True(t, mayRunOn(t, corev1.PodSpec{Affinity: values.Affinity}, ownNode))
	requireRestricted(t, corev1.PodSpec{SecurityContext: values.SecurityContext,
		Containers: []corev1.Container{{Name: "ca", SecurityContext: values.ContainerSecurityContext}}})

	objects := render(t, "certmanager")
	c := readCloudConfig(t, objects, "certmanager")
	mounts := map[string]string{} // names of Secrets by mount path
	for _, volume := range values.ExtraVolumeSecrets {
		mounts[volume.MountPath] = volume.Name
	}
	require.Equal(t, one[corev1.Secret](t, objects, namespace, release+"-cloud-config").Name,
		mounts[filepath.Dir(values.ExtraArgs["cloud-config"].(string))])
	for _, path := range []string{c.Cert, c.Key, c.Cacert} {
		require.Equal(t, one[certificate](t, objects, namespace, release+"-client-tls").Spec.SecretName,
			mounts[filepath.Dir(path)])
	}

	groups, err := config.Parse([]byte(one[corev1.ConfigMap](t, objects, namespace,
		release+"-nodegroups").Data["nodegroups.yaml"]))
	require.NoError(t, err)
	provision, err := time.ParseDuration(values.ExtraArgs["max-node-provision-time"].(string))
	require.NoError(t, err)
	require.Greater(t, provision, groups.NodeGroups[1].Budgets.Total.Duration+2*10*time.Second,
		"our default budget and two of CA's scans")

	flags := flagsOfCA(t)
	for name := range values.ExtraArgs {
		name, _, _ = strings.Cut(name, "_") // the chart removes the suffix, so that a flag can be given twice
		require.Contains(t, flags, fmt.Sprintf("%q", name), "CA has no flag --%s", name)
	}
}

// `liqo-autoscaler config cloud-config` prints the same file as the chart, and the same values as
// deploy/ca/values.yaml.
func TestCloudConfigCommandEqualsTheChart(t *testing.T) {
	binary := tool(t, "LIQO_AUTOSCALER")
	read := func(into any, args ...string) {
		out, err := exec.CommandContext(t.Context(), binary, append([]string{"config", "cloud-config"}, args...)...).Output()
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(out, into), "%s", out)
	}
	var secure, plain cloudConfig
	read(&secure)
	require.Equal(t, readCloudConfig(t, render(t, "certmanager"), "certmanager"), secure)
	read(&plain, "--plaintext")
	require.Equal(t, readCloudConfig(t, render(t, "plaintext"), "plaintext"), plain)

	var printed, file map[string]any
	read(&printed, "-o", "helm-values", "--config", "examples/nodegroups.yaml")
	raw, err := os.ReadFile("ca/values.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &file))
	require.Equal(t, file["cloudProvider"], printed["cloudProvider"])
	require.Equal(t, file["extraVolumeSecrets"], printed["extraVolumeSecrets"])
	require.NotContains(t, printed, "cloudConfigPath", "CA's chart has no use for it with externalgrpc")
	require.Equal(t, file["extraArgs"].(map[string]any)["cloud-config"],
		printed["extraArgs"].(map[string]any)["cloud-config"])
}

// flagsOfCA returns the source code that defines CA's flags, in the version that our go.mod requires.
func flagsOfCA(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"k8s.io/autoscaler/cluster-autoscaler").Output()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config", "flags", "flags.go"))
	require.NoError(t, err)
	return string(source)
}
