package keep

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPortsOfAllSlotsDiffer checks that all clusters of all slots can run concurrently, because their ports differ.
func TestPortsOfAllSlotsDiffer(t *testing.T) {
	seen := map[int][2]int{}
	for slot := range 10 {
		c := Config{Slot: slot}
		for i := range 10 {
			p := reflect.ValueOf(c.ports(i))
			for f := range p.NumField() {
				port := int(p.Field(f).Int())
				other, taken := seen[port]
				require.False(t, taken, "port %d of slot %d cluster %d (%s) is that of %v", port, slot, i, p.Type().Field(f).Name,
					other)
				seen[port] = [2]int{slot, i}
			}
		}
		first, last := c.kubeletPorts()
		for port := first; port <= last; port++ {
			_, taken := seen[port]
			require.False(t, taken, "port %d", port)
			seen[port] = [2]int{slot, -1}
		}
	}
}

func TestCertificates(t *testing.T) {
	p, err := newPKI(filepath.Join(t.TempDir(), "pki"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, p.caCert))
	for path, options := range map[string]x509.VerifyOptions{
		p.serverCert: {DNSName: "127.0.0.1", KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		p.adminCert:  {KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		options.Roots = roots
		_, err := certificate(t, path).Verify(options)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"system:masters"}, certificate(t, p.adminCert).Subject.Organization)
	info, err := os.Stat(p.caKey)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return c
}

const rendered = `
# Source: liqo/templates/empty.yaml
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: liqo-webhook}
spec: {template: {spec: {containers: [{args: ["--cluster-id=$(CLUSTER_ID)", "--liqo-namespace=$(POD_NAMESPACE)", "--podcidr=", --secret-name, "--secret-name-extra=1"]}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: liqo-clusterid-configmap}
`

func TestArgumentsAreReadFromTheChart(t *testing.T) {
	ch, err := parse([]byte(rendered))
	require.NoError(t, err)
	require.Len(t, ch["ConfigMap"], 1)
	require.Len(t, ch, 2)
	args, err := ch.args("liqo-webhook", "provider1", "--podcidr", "--secret-name")
	require.NoError(t, err)
	require.Equal(t, []string{"--cluster-id=provider1", "--liqo-namespace=liqo", "--secret-name-extra=1"}, args)
	_, err = ch.args("nobody", "provider1")
	require.ErrorContains(t, err, "nobody")
	_, err = parse([]byte("a: [1"))
	require.Error(t, err)
}

func TestWebhooksAreCalledByURL(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{map[string]any{
		"name": "pod.mutate", "clientConfig": map[string]any{"service": map[string]any{"path": "/mutate/pod",
			"port": int64(9443)}}}}}}
	require.NoError(t, byURL(o, 9500, []byte("ca")))
	want := map[string]any{"webhooks": []any{map[string]any{
		"name": "pod.mutate", "clientConfig": map[string]any{"url": "https://127.0.0.1:9500/mutate/pod",
			"caBundle": "Y2E="}}}}
	require.Empty(t, cmp.Diff(want, o.Object))
}

func TestEnvironmentOfAVirtualKubelet(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: PlainNode, Containers: []corev1.Container{
		{Command: []string{"/bin/other"}},
		{Command: []string{"/usr/bin/virtual-kubelet"}, Env: []corev1.EnvVar{
			{Name: "VIRTUALNODE_NAME", Value: "n"},
			{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
			}},
		}}}}}
	pod.Namespace = "tenant"
	k := &kubelet{cluster: &cluster{lab: &lab{}}}
	real := k.real(pod)
	require.Len(t, real, 1)
	require.Same(t, &pod.Spec.Containers[1], real[0])
	env := environment(pod, real[0], "127.0.0.1")
	require.Equal(t, []string{"POD_IP=127.0.0.1", "POD_NAMESPACE=tenant", "VIRTUALNODE_NAME=n"}, pairs(env))
	require.Equal(t, []string{"--node=n", "--both=127.0.0.1,tenant", "$(HOME)"},
		expandArgs([]string{"--node=$(VIRTUALNODE_NAME)", "--both=$(POD_IP),$(POD_NAMESPACE)", "$(HOME)"}, env))
	pod.Spec.Containers = pod.Spec.Containers[:1]
	require.Empty(t, k.real(pod))
}

func TestKubeletPortsAreReused(t *testing.T) {
	l := &lab{kubeletPort: map[int]bool{}}
	first, err := l.takePort()
	require.NoError(t, err)
	second, err := l.takePort()
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	l.freePort(first)
	again, err := l.takePort()
	require.NoError(t, err)
	require.Equal(t, first, again)
}
