package e2e_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/node"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const (
	installedIn = "liqo-autoscaler" // namespace and name of the release
	// roomNodeIP is the address of the consumer's real node, and serviceIP the address of the consumer's Service
	// kubernetes. The lab's certificates are valid for both.
	roomNodeIP = "192.168.201.2"
	serviceIP  = "10.90.0.1"
	// envImages is the environment variable with the path of a folder that contains liqo-autoscaler, built without
	// cgo.
	envImages = "LIQO_AUTOSCALER_LAB_IMAGES"
)

// installation is the chart in the consumer's cluster, and a Cluster Autoscaler. The chart's pod runs on a real
// kubelet.
type installation struct {
	t        *testing.T
	dir      string
	lab      *lab.Lab
	consumer *cluster
	env      []string // of the guide's commands
}

// TestInstalled follows docs/install.md on two clusters with Liqo. It runs the guide's commands that are marked as
// tested, exactly as printed, and starts Cluster Autoscaler with the guide's ca-values.yaml. The chart is installed
// by helm, and its pod with the bundled Temporal runs in containers, from images that are imported as tar files. It
// needs a room; `make e2e SUITE=installed` makes one.
func TestInstalled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	loop, err := ca.Build(ctx, t.TempDir())
	require.NoError(t, err)
	i := newInstallation(ctx, t)
	r := newSteps(t)
	blocks, _ := guide(t)
	require.Len(t, blocks, 4, "setup, helm, the namespace, the pod")

	i.run(ctx, strings.Replace(blocks[0], " setup ", " setup --network mode=none --tls-secret server-tls "+
		"--provider-server "+i.providerURL()+" ", 1))
	r.done("setup")
	i.certificates(ctx)
	i.cordon(ctx, "plain-0", true)
	i.run(ctx, blocks[1])
	r.until(ctx, "chart's pod ready", 3*time.Minute, i.podReady)
	i.cordon(ctx, "plain-0", false) // the simulated kubelet runs Liqo's virtual kubelets
	i.cordon(ctx, realNode, true)
	i.startCA(ctx, loop)
	i.run(ctx, blocks[2])
	i.run(ctx, blocks[3])
	r.until(ctx, "first pod runs on the provider", 3*time.Minute, i.runsRemotely)
	i.operators(ctx)
	i.run(ctx, "kubectl --context munich -n shop delete deployment web")
	r.until(ctx, "node released", 2*time.Minute, func(ctx context.Context) error {
		return i.consumer.count(ctx, virtualNodes, 0)
	})
}

// newInstallation starts the lab, the consumer's real node, and the addresses at which a pod reaches both API servers.
func newInstallation(ctx context.Context, t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, dir: filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", "installed")}
	require.NoError(t, os.RemoveAll(i.dir))
	require.NoError(t, os.MkdirAll(i.dir, 0o755))
	server, err := lab.BuildTemporal(ctx, t.Logf)
	require.NoError(t, err)
	i.lab = lab.ForTest(ctx, t, lab.Options{Providers: 1, Kubelet: true})
	i.consumer = newCluster(t, i.lab, lab.Consumer)
	_, err = node.Start(ctx, node.Options{Name: realNode, Kubeconfig: i.lab.Kubeconfig(lab.Consumer), Bin: i.lab.Bin,
		Logs: i.dir, IP: roomNodeIP, Pods: "10.201.0.0/16"})
	require.NoError(t, err)
	images := os.Getenv(envImages)
	require.NoError(t, node.Import(ctx, "registry.example.com/liqo-autoscaler:0.1.0", map[string]string{
		"ko-app/liqo-autoscaler": filepath.Join(images, "liqo-autoscaler")},
		v1.Config{Entrypoint: []string{"/ko-app/liqo-autoscaler"}, User: "65532"}))
	require.NoError(t, node.Import(ctx, "temporalio/server:1.32.0", withLibraries(ctx, t, map[string]string{
		"bin/sh": "/bin/sh", "bin/flock": "/usr/bin/flock",
		"usr/local/bin/temporal-server": filepath.Join(server, "server")}),
		v1.Config{Env: []string{"PATH=/usr/local/bin:/bin"}, User: "1000"}))
	i.volume(ctx)
	require.NoError(t, exec.CommandContext(ctx, "ip", "address", "add", serviceIP+"/32", "dev", "lo").Run())
	i.forward(serviceIP+":443", i.address(lab.Consumer))
	i.forward(i.providerURL()[len("https://"):], i.address(i.lab.Providers[0]))
	i.prepareCommands(ctx)
	t.Cleanup(func() {
		if t.Failed() {
			out, err := i.try(context.Background(), "kubectl --context munich get nodes,pods,events -A -o wide | tail -n 120; "+
				"kubectl --context munich -n liqo-autoscaler describe pod | tail -n 60; "+
				"kubectl --context munich -n liqo-autoscaler logs liqo-autoscaler-0 --all-containers --tail 30")
			t.Logf("%s (%v)\nlogs end:\n%s", out, err, proc.Tails(i.dir, 15))
		}
	})
	return i
}

// run runs commands of the guide, which must succeed, and returns their output.
func (i *installation) run(ctx context.Context, commands string) string {
	i.t.Helper()
	out, err := i.try(ctx, commands)
	i.t.Logf("$ %s\n%s", strings.TrimSpace(commands), out)
	require.NoError(i.t, err)
	return out
}

func (i *installation) try(ctx context.Context, commands string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = i.dir, i.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// certificates makes the two Secrets that cert-manager would make: the Secret of the gRPC server, and the Secret of
// Cluster Autoscaler.
func (i *installation) certificates(ctx context.Context) {
	i.t.Helper()
	authority := newAuthority(i.t)
	server := authority.Issue(i.t, func(c *x509.Certificate) {
		c.Subject, c.DNSNames = pkix.Name{}, []string{installedIn + "." + installedIn + ".svc"}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}).Secret(i.t, authority)
	for name, data := range map[string]map[string][]byte{"server-tls": server,
		installedIn + "-client-tls": clientSecret(i.t, authority, "cluster-autoscaler", authority)} {
		_, err := i.consumer.kube.CoreV1().Secrets(installedIn).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
		require.NoError(i.t, err)
	}
}

func (i *installation) cordon(ctx context.Context, name string, on bool) {
	i.t.Helper()
	_, err := i.consumer.kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on), metav1.PatchOptions{})
	require.NoError(i.t, err)
}

// podReady returns an error until the chart's pod is Ready on the real node.
func (i *installation) podReady(ctx context.Context) error {
	pod, err := i.consumer.kube.CoreV1().Pods(installedIn).Get(ctx, installedIn+"-0", metav1.GetOptions{})
	if err == nil && (pod.Spec.NodeName != realNode || !podIs(pod, corev1.PodReady)) {
		err = fmt.Errorf("pod %s on %q is %s: %+v", pod.Name, pod.Spec.NodeName, pod.Status.Phase,
			pod.Status.ContainerStatuses)
	}
	return err
}

func podIs(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// startCA starts Cluster Autoscaler's loop with the flags of ca-values.yaml. It writes the Secrets into files at the
// paths at which these values mount them. It writes the name of the gRPC server's Service into /etc/hosts, because
// the lab has no DNS. The room has its own copy of /etc.
func (i *installation) startCA(ctx context.Context, loop string) {
	i.t.Helper()
	var values struct {
		ExtraArgs          map[string]any                              `json:"extraArgs"`
		ExtraVolumeSecrets map[string]struct{ Name, MountPath string } `json:"extraVolumeSecrets"`
	}
	text, err := os.ReadFile(filepath.Join(i.dir, "ca-values.yaml"))
	require.NoError(i.t, err)
	require.NoError(i.t, yaml.Unmarshal(text, &values))
	require.Len(i.t, values.ExtraVolumeSecrets, 2)
	for _, mount := range values.ExtraVolumeSecrets {
		secret, err := i.consumer.kube.CoreV1().Secrets(installedIn).Get(ctx, mount.Name, metav1.GetOptions{})
		require.NoError(i.t, err)
		require.NoError(i.t, os.MkdirAll(mount.MountPath, 0o755))
		for name, data := range secret.Data {
			require.NoError(i.t, os.WriteFile(filepath.Join(mount.MountPath, name), data, 0o600))
		}
	}
	pod, err := i.consumer.kube.CoreV1().Pods(installedIn).Get(ctx, installedIn+"-0", metav1.GetOptions{})
	require.NoError(i.t, err)
	hosts, err := os.OpenFile("/etc/hosts", os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(i.t, err)
	_, err = fmt.Fprintf(hosts, "\n%s %s.%s.svc\n", pod.Status.PodIP, installedIn, installedIn)
	require.NoError(i.t, errors.Join(err, hosts.Close()))
	o := ca.Options{Binary: loop, Kubeconfig: i.lab.Kubeconfig(lab.Consumer), Dir: i.dir,
		CloudConfig: fmt.Sprint(values.ExtraArgs["cloud-config"])}
	for name, value := range values.ExtraArgs { // CA's chart cuts the suffix that makes a flag's key unique
		o.Flags = append(o.Flags, fmt.Sprintf("--%s=%v", regexp.MustCompile(`_\d+$`).ReplaceAllString(name, ""), value))
	}
	p, err := ca.Start(ctx, o)
	require.NoError(i.t, err)
	i.t.Cleanup(p.Kill)
}

// runsRemotely returns an error until the guide's pod is Ready on a virtual node.
func (i *installation) runsRemotely(ctx context.Context) error {
	pods, err := i.consumer.kube.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
	switch {
	case err != nil:
		return err
	case len(pods.Items) != 1:
		return fmt.Errorf("%d pods in shop", len(pods.Items))
	}
	pod := &pods.Items[0]
	if !strings.HasPrefix(pod.Spec.NodeName, "lca-standard-") || !podIs(pod, corev1.PodReady) {
		return fmt.Errorf("pod %s on %q is %s: %+v", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Conditions)
	}
	return nil
}

// operators runs the commands of an operator. They reach the bundled Temporal through a forwarded port, because it
// listens only on the pod's loopback address.
func (i *installation) operators(ctx context.Context) {
	i.t.Helper()
	port := testkit.FreePorts(i.t, 1)[0]
	_, number, err := net.SplitHostPort(port)
	require.NoError(i.t, err)
	p, err := proc.Start(proc.Spec{Name: "port-forward", Path: filepath.Join(i.lab.Bin, "kubectl"), LogDir: i.dir,
		Env: i.env, Args: []string{"--context", "munich", "-n", installedIn, "port-forward", "statefulset/" + installedIn,
			number + ":7233"}})
	require.NoError(i.t, err)
	defer p.Kill()
	require.NoError(i.t, p.Until(ctx, func(context.Context) error {
		if log := proc.Tail(p.Log, 5); !strings.Contains(log, "Forwarding from") {
			return fmt.Errorf("no port is forwarded: %s", log)
		}
		return nil
	}))
	out := i.run(ctx, "liqo-autoscaler status --temporal-address "+port)
	require.Regexp(i.t, `standard-\w+-1 +standard +Ready `, out)
}
