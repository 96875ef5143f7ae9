package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// TestSetupGuides follows docs/install.md and docs/quickstart-kind.md. It runs each step that is marked `ran here:
// make deploy-check`, with the commands as printed. The consumer and the provider are real API servers with Liqo's
// CRDs, its cluster id and its Deployment. The test then checks the effects. The second guide uses the same clusters
// as the first guide, so setup finds the objects that it has created.
func TestSetupGuides(t *testing.T) {
	consumer, lender := startCluster(t), startCluster(t)
	consumer.withLiqo(t, "munich")
	lender.withLiqo(t, "milan")
	consumer.kubectl(t, operatorCRDs(), "apply", "--server-side", "-f", "-") // the CRDs of cert-manager
	consumer.crdsServed(t)
	lender.addLargeNode(t)
	pair := pairConfig(t, consumer, lender)

	out := followGuide(t, pair, "../docs/install.md", lender.config.Host)
	require.Contains(t, out, "objects 29 created, 0 changed, 0 unchanged")
	install, err := os.ReadFile("../docs/install.md")
	require.NoError(t, err)
	require.Contains(t, string(install), "| 29 by `setup`")
	checkGuide(t, consumer)
	charts := func() int {
		manifest, err := inGuide(t, pair, t.TempDir(), "helm --kube-context munich -n liqo-autoscaler get "+
			"manifest liqo-autoscaler")
		require.NoError(t, err, manifest)
		return strings.Count("\n"+manifest, "\nkind: ")
	}
	const others = 8 + 29 + 4 // objects of CA's chart, the provider and the consumer
	n := charts()
	require.Contains(t, string(install), fmt.Sprintf("| %d with these values", n))
	require.Contains(t, string(install), fmt.Sprintf("| %d; the quickstart", n+others))
	out = followGuide(t, pair, "../docs/quickstart-kind.md", "")
	require.Contains(t, out, "objects 0 created, 0 changed, 29 unchanged")
	checkGuide(t, consumer)
	n = charts()
	require.Contains(t, string(install), fmt.Sprintf("the quickstart has %d |\n| objects of CA", n))
	require.Contains(t, string(install), fmt.Sprintf("the quickstart has %d |\n\n", n+others))
	_, err = consumer.kube.AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
	require.Error(t, err, "the guide deletes it")

	folder := t.TempDir()
	setup := func(args ...string) (string, error) {
		return inGuide(t, pair, folder, "liqo-autoscaler setup --consumer-context munich --provider-context milan "+
			"--provider-server https://milan-control-plane:6443 "+strings.Join(args, " "))
	}
	out, err = setup()
	require.NoError(t, err, out)
	require.Contains(t, out, "Secret liqo-autoscaler/milan: unchanged")
	require.Contains(t, out, "token: unchanged")
	secret, err := consumer.kube.CoreV1().Secrets("liqo-autoscaler").Get(t.Context(), "milan", metav1.GetOptions{})
	require.NoError(t, err)
	actsAsConsumer(t, lender, secret)

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "standard-1",
		Labels: map[string]string{"liqo.io/remote-cluster-id": "milan"}}}
	_, err = consumer.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	require.NoError(t, err)
	out, err = setup("--undo")
	require.Error(t, err, out)
	require.Contains(t, out, "it still has objects with milan: Node standard-1")
	require.NoError(t, consumer.kube.CoreV1().Nodes().Delete(t.Context(), "standard-1", metav1.DeleteOptions{}))
	out, err = setup("--undo")
	require.NoError(t, err, out)
	require.Contains(t, out, "28 objects removed")
	_, err = consumer.kube.CoreV1().Secrets("liqo-autoscaler").Get(t.Context(), "milan", metav1.GetOptions{})
	require.Error(t, err)
	require.Empty(t, strings.TrimSpace(lender.kubectl(t, nil, "get",
		"clusterrole,validatingadmissionpolicy,clusterrolebinding",
		"-l", "liqo-autoscaler.io/setup", "-o", "name")))
}

// withLiqo creates Liqo's CRDs in the cluster, and the objects by which setup recognizes Liqo.
func (c *cluster) withLiqo(t *testing.T, id string) {
	t.Helper()
	crds, err := filepath.Glob(filepath.Join(c.bin, "chart", "charts", "liqo-crds", "crds", "*.yaml"))
	require.NoError(t, err)
	for _, crd := range crds {
		if name := filepath.Base(crd); strings.HasPrefix(name, "authentication") || strings.HasPrefix(name, "offloading") ||
			strings.HasPrefix(name, "core") {
			c.kubectl(t, nil, "apply", "--server-side", "-f", crd)
		}
	}
	c.crdsServed(t)
	c.kubectl(t, fmt.Appendf(nil, `apiVersion: v1
kind: Namespace
metadata: {name: liqo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: liqo-clusterid-configmap, namespace: liqo, labels: {app.kubernetes.io/name: clusterid-configmap}}
data: {CLUSTER_ID: %s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: liqo-controller-manager, namespace: liqo}
spec:
  selector: {matchLabels: {app: liqo}}
  template:
    metadata: {labels: {app: liqo}}
    spec: {containers: [{name: manager, image: "ghcr.io/liqotech/liqo-controller-manager:v1.2.0"}]}
`, id), "apply", "-f", "-")
}

func (c *cluster) addLargeNode(t *testing.T) {
	t.Helper()
	node, err := c.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi"),
		"pods": resource.MustParse("110"), "ephemeral-storage": resource.MustParse("100Gi")}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = c.kube.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	if len(node.Spec.Taints) > 0 { // admission has added the taint not-ready
		c.kubectl(t, nil, "taint", "nodes", "n1", "node.kubernetes.io/not-ready-")
	}
}

// pairConfig returns a kubeconfig with the contexts that both guides use.
func pairConfig(t *testing.T, consumer, lender *cluster) string {
	t.Helper()
	both, err := clientcmd.LoadFromFile(consumer.kubeconfig)
	require.NoError(t, err)
	other, err := clientcmd.LoadFromFile(lender.kubeconfig)
	require.NoError(t, err)
	for name, from := range map[string]string{"munich": "c", "kind-munich": "c"} {
		both.Contexts[name] = both.Contexts[from]
	}
	both.Clusters["other"], both.AuthInfos["other"] = other.Clusters["c"], other.AuthInfos["u"]
	for _, name := range []string{"milan", "kind-milan"} {
		context := *both.Contexts["c"].DeepCopy()
		context.Cluster, context.AuthInfo = "other", "other"
		both.Contexts[name] = &context
	}
	delete(both.Contexts, "c")
	both.CurrentContext = ""
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*both, path))
	return path
}

// followGuide writes the files of a guide, runs its commands, and returns their output. If server is not "", it adds
// --provider-server to the command of the guide, because the API servers of the test have loopback addresses.
func followGuide(t *testing.T, kubeconfig, path, server string) (printed string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	folder := t.TempDir()
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(here, filepath.Join(folder, "deploy")))
	ran := 0
	for _, step := range testkit.Guide(t, path) {
		block := step.Text
		if step.File != "" {
			require.NoError(t, os.WriteFile(filepath.Join(folder, step.File), []byte(block), 0o600))
			continue
		}
		ran++
		if server != "" {
			block = strings.Replace(block, "liqo-autoscaler setup ", "liqo-autoscaler setup --provider-server "+server+" ", 1)
		}
		out, err := inGuide(t, kubeconfig, folder, block)
		require.NoError(t, err, "%s\n%s", block, out)
		t.Logf("$ %s\n%s", strings.TrimSpace(block), out)
		printed += out
	}
	require.GreaterOrEqual(t, ran, 4, path)
	for _, line := range regexp.MustCompile(`(?m)^ *(kubectl|helm) .*$`).FindAllString(string(text), -1) {
		require.Regexp(t, `--(kube-)?context `, line, "each line names its context")
	}
	return printed
}

func inGuide(t *testing.T, kubeconfig, folder, text string) (string, error) {
	t.Helper()
	var path []string
	for _, program := range []string{tool(t, "LIQO_AUTOSCALER"), tool(t, "HELM"),
		filepath.Join(tool(t, "KUBE_BIN"), "kubectl")} {
		full, err := filepath.Abs(program)
		require.NoError(t, err)
		path = append(path, filepath.Dir(full))
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+folder, "HELM_CONFIG_HOME="+folder,
		"HELM_DATA_HOME="+folder, "PATH="+strings.Join(append(path, os.Getenv("PATH")), string(os.PathListSeparator)))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// checkGuide checks the effects of a guide on the consumer cluster.
func checkGuide(t *testing.T, c *cluster) {
	t.Helper()
	secret, err := c.kube.CoreV1().Secrets("liqo-autoscaler").Get(t.Context(), "milan", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "true", secret.Labels["autoscaling"])
	set, err := c.kube.AppsV1().StatefulSets("liqo-autoscaler").Get(t.Context(), "liqo-autoscaler", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(set.Spec.Template.Spec), "--offer-secrets-namespace=liqo-autoscaler")
	c.kubectl(t, nil, "-n", "shop", "get", "namespaceoffloadings.offloading.liqo.io", "offloading")
}

// actsAsConsumer checks the credentials in the Secret: they belong to the consumer's account on the provider, and
// have the account's permissions.
func actsAsConsumer(t *testing.T, lender *cluster, secret *corev1.Secret) {
	t.Helper()
	access, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	require.NoError(t, err)
	require.Equal(t, "https://milan-control-plane:6443", access.Host)
	out, err := lender.run(t, filepath.Join(lender.bin, "kubectl"), nil, "--kubeconfig", os.DevNull, "--server",
		lender.config.Host, "--insecure-skip-tls-verify", "--token", access.BearerToken, "-n", "liqo-tenant-munich",
		"auth", "can-i", "create", "tenants.authentication.liqo.io")
	require.NoError(t, err, out)
}
