package deploy_test

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// secured contains values for a Temporal with mutual TLS and an API key. The Secret of the authority uses another key
// name than the default.
var secured = []string{"--set", "temporal.namespace=edge,temporal.tls.ca.secretName=authority," +
	"temporal.tls.ca.key=root.pem," +
	"temporal.tls.clientCertificate.secretName=client,temporal.apiKey.secretName=cloud,temporal.codec.secretName=codec," +
	"temporal.setup.enabled=true"}

// All components that use Temporal have the same settings for it. From each Secret, they mount only those keys that
// their flags name.
func TestComponentsShareTheTemporalSettings(t *testing.T) {
	objects := render(t, "plaintext", secured...)
	job := one[batchv1.Job](t, objects, namespace, release+"-temporal-setup")
	pods := map[string]corev1.PodSpec{"setup": job.Spec.Template.Spec}
	for _, d := range all[appsv1.Deployment](objects) {
		pods[d.Name] = d.Spec.Template.Spec
	}
	require.Len(t, pods, 3)
	for name, pod := range pods {
		c := pod.Containers[0]
		for flag, at := range map[string][3]string{ // volume, Secret, key
			"--temporal-tls-ca":         {"temporal-ca", "authority", "root.pem"},
			"--temporal-tls-cert":       {"temporal-client", "client", "tls.crt"},
			"--temporal-tls-key":        {"temporal-client", "client", "tls.key"},
			"--temporal-api-key-file":   {"temporal-key", "cloud", "api-key"},
			"--temporal-codec-key-file": {"temporal-codec", "codec", "keys"},
		} {
			mount := c.VolumeMounts[slices.IndexFunc(c.VolumeMounts,
				func(m corev1.VolumeMount) bool { return m.Name == at[0] })]
			require.Equal(t, mount.MountPath+"/"+at[2], flagValue(c, flag), name)
			require.Empty(t, mount.SubPath, "a single file never changes")
			volume := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == at[0] })]
			require.Equal(t, at[1], volume.Secret.SecretName)
			require.Contains(t, volume.Secret.Items, corev1.KeyToPath{Key: at[2], Path: at[2]})
		}
		require.Equal(t, "edge", flagValue(c, "--temporal-namespace"))
	}
}

// The Job runs before the other objects of the release exist, so it uses no object of the release. The binary accepts
// the Job's arguments.
func TestSetupJobNeedsNoOtherObject(t *testing.T) {
	require.Empty(t, all[batchv1.Job](render(t, "plaintext")))
	job := one[batchv1.Job](t, render(t, "plaintext", secured...), namespace, release+"-temporal-setup")
	require.Equal(t, "pre-install,pre-upgrade", job.Annotations["helm.sh/hook"])
	pod := job.Spec.Template.Spec
	require.Equal(t, "default", pod.ServiceAccountName)
	require.False(t, *pod.AutomountServiceAccountToken)
	require.True(t, *pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
	for _, v := range pod.Volumes {
		require.NotNil(t, v.Secret)
	}
	out, err := exec.CommandContext(t.Context(), tool(t, "LIQO_AUTOSCALER"),
		append(slices.Clone(pod.Containers[0].Args), "--help")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "liqo-autoscaler temporal setup")
}

// With versioning, the workers of each image have their own Deployment. The Deployment keeps its name when its
// version becomes the previous version. Without versioning, all workers have one Deployment.
func TestEachVersionHasItsOwnWorkers(t *testing.T) {
	const before, versioning = "registry.example.com/la:0.1.0", "worker.versioning.deploymentName=la"
	workers := func(objects []object) map[string]string {
		images := map[string]string{}
		for _, d := range all[appsv1.Deployment](objects) {
			if pod := d.Spec.Template.Spec; pod.Containers[0].Name == "worker" {
				images[d.Name] = pod.Containers[0].Image
				require.Equal(t, flagValue(pod.Containers[0], "--deployment-name") != "", d.Name != release+"-worker")
				for key, value := range d.Spec.Selector.MatchLabels {
					require.Equal(t, value, d.Spec.Template.Labels[key])
				}
				require.Equal(t, d.Name != release+"-worker", d.Spec.Selector.MatchLabels["liqo-autoscaler.io/worker-image"] != "")
			}
		}
		return images
	}
	off := render(t, "plaintext", "--set", "worker.versioning.keep={"+before+"}")
	require.Len(t, workers(off), 1)
	require.Contains(t, workers(off), release+"-worker")

	old := workers(render(t, "plaintext", "--set", versioning+",image.repository=registry.example.com/la,image.tag=0.1.0"))
	require.Len(t, old, 1)
	both := workers(render(t, "plaintext", "--set",
		versioning+",image.repository=registry.example.com/la,image.tag=0.2.0,"+
			"worker.versioning.keep={"+before+"}"))
	require.Len(t, both, 2)
	for name := range old {
		require.Equal(t, before, both[name])
	}
}
