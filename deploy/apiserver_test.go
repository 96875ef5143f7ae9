package deploy_test

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/memlimit"
)

// cluster is an etcd and a kube-apiserver without controllers. The API server validates, admits, authorizes and
// stores objects.
type cluster struct {
	bin        string // the folder with etcd, kube-apiserver and kubectl
	kubeconfig string // the administrator's kubeconfig
	config     *rest.Config
	kube       kubernetes.Interface
	removed    map[validation]bool    // see removeEach; nil for a cluster of the lab
	undoes     func(what string) bool // see TestLabPolicies
	limit      *memlimit.Group        // the memory limit of the agent, or nil
}

// startCluster starts both processes on free ports, with new keys. They end with the test.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{bin: tool(t, "KUBE_BIN"), removed: map[validation]bool{},
		undoes: func(string) bool { return false }}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca := testkit.NewAuthority(t)
	ca.Write(t, file("ca.crt"), file("ca.key"))
	ca.Issue(t).Write(t, file("server.crt"), file("server.key"))
	admin := ca.Issue(t, func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}
	})
	admin.Write(t, file("admin.crt"), file("admin.key"))
	ports := testkit.FreePorts(t, 3)
	etcd, peers, api := ports[0], ports[1], ports[2]

	c.start(t, "etcd", "--data-dir", file("etcd"), "--listen-client-urls=http://"+etcd,
		"--advertise-client-urls=http://"+etcd,
		"--listen-peer-urls=http://"+peers, "--initial-advertise-peer-urls=http://"+peers,
		"--initial-cluster=default=http://"+peers,
		"--unsafe-no-fsync", "--log-level=error")
	_, port, err := net.SplitHostPort(api)
	require.NoError(t, err)
	ended := c.start(t, "kube-apiserver", "--etcd-servers=http://"+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
		"--client-ca-file="+file("ca.crt"), "--tls-cert-file="+file("server.crt"),
		"--tls-private-key-file="+file("server.key"),
		"--service-account-key-file="+file("server.crt"), "--service-account-signing-key-file="+file("server.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement") // OpenShift enables this plugin

	c.kubeconfig = file("kubeconfig")
	require.NoError(t, os.WriteFile(c.kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://%s", certificate-authority: %s}}]
users: [{name: u, user: {client-certificate: %s, client-key: %s}}]
`, api, file("ca.crt"), file("admin.crt"), file("admin.key")), 0o600))
	c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	require.NoError(t, err)
	c.config.QPS, c.config.Burst = 200, 400
	c.kube, err = kubernetes.NewForConfig(c.config)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			require.Fail(t, "kube-apiserver has ended")
		default:
		}
		_, err := c.kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil
	}, 2*time.Minute, 200*time.Millisecond, "kube-apiserver is not ready")
	return c
}

// start starts a process that ends with the test. If the process ends earlier, start closes the channel ended.
func (c *cluster) start(t *testing.T, name string, args ...string) (ended <-chan struct{}) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	require.NoError(t, err)
	defer log.Close() // the process has its own descriptor of the file
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s said last:\n%s", name, said[max(0, len(said)-8000):])
		}
	})
	return done
}

// run runs a program such as kubectl or helm as the administrator. input is its standard input.
func (c *cluster) run(t *testing.T, path string, input []byte, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HELM_CACHE_HOME="+t.TempDir(),
		"HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// crdsServed waits until every CRD is served. It retries, because kubectl wait fails immediately for a CRD without
// conditions.
func (c *cluster) crdsServed(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		out, err := c.run(t, filepath.Join(c.bin, "kubectl"), nil, "wait", "--for=condition=Established", "crd", "--all",
			"--timeout=60s")
		if err != nil {
			t.Logf("CRDs are not served yet: %s", out)
		}
		return err == nil
	}, 2*time.Minute, 100*time.Millisecond)
}

func (c *cluster) kubectl(t *testing.T, input []byte, args ...string) string {
	t.Helper()
	out, err := c.run(t, filepath.Join(c.bin, "kubectl"), input, args...)
	require.NoError(t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	return out
}
