package deploy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// The chart's agent measures a cluster with a real API server. It has exactly the rights that the chart grants. The
// pods of other users reduce its offer, and the agent withdraws the offer when it stops. Two consumers request slices
// concurrently. The agent is killed during this time. It still grants only as many slices as fit.
func TestAgentOnARealCluster(t *testing.T) {
	testkit.Slow(t)
	c := startCluster(t)
	deployment := c.installAgent(t)
	c.addNode(t, corev1.ResourceList{"cpu": resource.MustParse("63"), "memory": resource.MustParse("16Gi"),
		"pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("2")})
	keep := storetest.New(t)
	offered := func(cpu string) func() error {
		return func() error {
			records, err := keep.List(t.Context(), store.Query{Limit: 10}, time.Now())
			if err != nil {
				return err
			}
			if len(records) == 0 && cpu == "" {
				return nil
			}
			for _, r := range records {
				if o := r.Offer; o.Name == "milan" && o.Lendable.Cpu().String() == cpu && o.Class == agent.Class {
					return nil
				}
			}
			return fmt.Errorf("offered: %v", records)
		}
	}
	stop, kill := c.runAgent(t, deployment, keep)
	testkit.Until(t, 2*time.Minute, "it is offered what the node has", offered("63"))
	c.kubectl(t, nil, "-n", "apps", "run", "other", "--image=x", `--overrides={"spec":{"nodeName":"n","containers":`+
		`[{"name":"other","image":"x","resources":{"requests":{"cpu":"3"}}}]}}`)
	testkit.Until(t, 2*time.Minute, "the amounts without the pods of other users", offered("60"))
	c.noRoomIsGrantedTwice(t, func() {
		kill()
		stop, _ = c.runAgent(t, deployment, keep)
	})
	c.kubectl(t, nil, "-n", "apps", "delete", "pod", "other", "--force", "--grace-period=0")
	testkit.Until(t, 2*time.Minute, "what is granted is not offered", offered("3"))
	objects, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	for _, of := range []string{"munich", "rome"} { // of Liqo's own class, which the agent does not answer
		_, err := objects.Resource(liqoResource("resourceslices")).Namespace("liqo-tenant-"+of).Create(t.Context(),
			incoming(of, "before", "default"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	testkit.Until(t, 2*time.Minute, "amounts that Liqo grants automatically are not offered", offered("1"))
	c.deniesDefaultClass(t, objects)
	require.Contains(t, stop(), "offer withdrawn")
	require.NoError(t, offered("")())
	c.publishesToConsumers(t, deployment)
}

// publishesToConsumers checks that an agent without a discovery server writes its offers into the tenant namespaces
// of the consumers.
func (c *cluster) publishesToConsumers(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	published := func(want string) func() error {
		return func() error {
			for _, consumer := range []string{"munich", "turin"} {
				found, err := c.kube.CoreV1().ConfigMaps("liqo-tenant-"+consumer).Get(t.Context(), discovery.PublishedName,
					metav1.GetOptions{})
				if err != nil {
					return err
				}
				var offer discovery.Published
				if document := found.Data["default"]; document == "" && want == "" {
					continue
				} else if err := json.Unmarshal([]byte(document), &offer); err != nil {
					return err
				}
				cpu := offer.Lendable.Cpu().String()
				if consumer == "munich" && cpu != want || offer.Class != agent.Class || offer.TTLSeconds != 60 {
					return fmt.Errorf("%s: %+v", consumer, offer)
				}
			}
			return nil
		}
	}
	stop, _ := c.runAgent(t, d, nil)
	testkit.Until(t, 2*time.Minute, "both are offered what is free", published("1"))
	stop()
	require.NoError(t, published("")())
}

// installAgent installs the agent's chart into a cluster, and creates the objects that a cluster with Liqo has.
func (c *cluster) installAgent(t *testing.T) *appsv1.Deployment {
	t.Helper()
	c.kubectl(t, nil, "create", "namespace", namespace)
	c.kubectl(t, nil, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	c.kubectl(t, nil, "create", "namespace", "apps")
	c.kubectl(t, nil, "create", "namespace", "liqo")
	c.kubectl(t, nil, "-n", "apps", "create", "serviceaccount", "default")
	crds := filepath.Join(c.bin, "chart", "charts", "liqo-crds", "crds")
	for _, kind := range []string{"resourceslices", "tenants"} {
		c.kubectl(t, nil, "apply", "--server-side", "-f", filepath.Join(crds, "authentication.liqo.io_"+kind+".yaml"))
	}
	c.crdsServed(t)
	out, err := c.run(t, tool(t, "HELM"), nil, "install", "liqo-autoscaler-agent", agentChart, "-n", namespace, "--values",
		agentValues("least"), "--set", "grantSlices=true,offers[1].consumer=turin,offers[1].name=milan-for-turin,"+
			"offers[1].credentials.secretRef.namespace=liqo-autoscaler,offers[1].credentials.secretRef.name=milan")
	require.NoError(t, err, "%s", out)
	deployments := c.kube.AppsV1().Deployments(namespace)
	deployment, err := deployments.Get(t.Context(), "liqo-autoscaler-agent", metav1.GetOptions{})
	require.NoError(t, err)
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	pod.Name = "admitted"
	_, err = c.kube.CoreV1().Pods(namespace).Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	return deployment
}

// addNode adds a Ready Node named n with these resources.
func (c *cluster) addNode(t *testing.T, has corev1.ResourceList) {
	t.Helper()
	nodes := c.kube.CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Spec.Taints = nil // admission adds the taint not-ready
	node, err = nodes.Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	node.Status.Allocatable, node.Status.Capacity = has, has
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// runAgent starts the Deployment's container as a process, with a token of the Deployment's ServiceAccount. stop ends
// the process as a kubelet does, and returns its log. kill kills the process. The process is also killed when the
// test ends. If keep is nil, the agent has no discovery server.
func (c *cluster) runAgent(t *testing.T, d *appsv1.Deployment, keep store.Store) (stop func() string, kill func()) {
	t.Helper()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	const token = "the-agent's"
	sum := sha256.Sum256([]byte(token))
	writers, err := server.ParseWriters(fmt.Appendf(nil, "writers: [{name: milan, tokenSHA256: %s, providers: [milan]}]",
		hex.EncodeToString(sum[:])))
	require.NoError(t, err)
	served := keep
	if served == nil {
		served = storetest.New(t)
	}
	api, err := server.New(server.Options{Store: served, Writers: writers, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	web := httptest.NewTLSServer(api)
	t.Cleanup(web.Close)

	config, err := c.kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), d.Name, metav1.GetOptions{})
	require.NoError(t, err)
	account := strings.TrimSpace(c.kubectl(t, nil, "-n", namespace, "create", "token",
		d.Spec.Template.Spec.ServiceAccountName))
	kubeconfig := file("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %q}}]
`, c.config.Host, c.config.CAFile, account))
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	args := append(d.Spec.Template.Spec.Containers[0].Args, // if a flag is given twice, the last value counts
		"--config="+file("agent.yaml", config.Data["agent.yaml"]), "--kubeconfig="+kubeconfig, "--discovery-url="+web.URL,
		"--discovery-token-file="+file("token", token), "--discovery-ca="+file("ca.crt", authority),
		"--health-listen=", "--metrics-listen=")
	if keep == nil {
		args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--discovery-") })
	}
	var log testkit.Buffer
	path := tool(t, "LIQO_AUTOSCALER_AGENT")
	if c.limit != nil {
		path, args = c.limit.Command(path, args...)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	kill = func() { _ = cmd.Process.Kill() }
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("the agent said:\n%s", log.String())
		}
	})
	return func() string {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(2 * time.Minute):
			require.Fail(t, "the agent does not end")
		}
		return log.String()
	}, kill
}
