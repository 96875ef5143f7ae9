package deploy_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
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

	"github.com/liqo-autoscaler/liqo-autoscaler/worker/workertest"
)

// cluster is an etcd and a kube-apiserver, without controllers: enough to validate, admit, store and authorize.
type cluster struct {
	bin        string // the folder of etcd, kube-apiserver and kubectl
	kubeconfig string // of its administrator
	config     *rest.Config
	kube       kubernetes.Interface
}

// startCluster starts both on free ports with keys made for this test; they end with it, by pid.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{bin: tool(t, "KUBE_BIN")}
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	ca.issue(t, "server", pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth)
	ca.issue(t, "admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}, x509.ExtKeyUsageClientAuth)
	file := func(name string) string { return filepath.Join(dir, name) }
	ports := workertest.FreePorts(t, 3)
	etcd, peers, api := ports[0], ports[1], ports[2]

	c.start(t, "etcd", "--data-dir", file("etcd"), "--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd,
		"--listen-peer-urls=http://"+peers, "--initial-advertise-peer-urls=http://"+peers, "--initial-cluster=default=http://"+peers,
		"--unsafe-no-fsync", "--log-level=error")
	_, port, err := net.SplitHostPort(api)
	require.NoError(t, err)
	ended := c.start(t, "kube-apiserver", "--etcd-servers=http://"+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
		"--client-ca-file="+file("ca.crt"), "--tls-cert-file="+file("server.crt"), "--tls-private-key-file="+file("server.key"),
		"--service-account-key-file="+file("server.crt"), "--service-account-signing-key-file="+file("server.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement") // as OpenShift does

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

// start starts a process that ends with the test, or closes ended before.
func (c *cluster) start(t *testing.T, name string, args ...string) (ended <-chan struct{}) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	require.NoError(t, err)
	defer log.Close() // the process has its own
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
			t.Logf("%s said last:\n%s", name, said[max(0, len(said)-2000):])
		}
	})
	return done
}

// run runs kubectl or helm as the administrator, with input for its standard input.
func (c *cluster) run(t *testing.T, path string, input []byte, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *cluster) kubectl(t *testing.T, input []byte, args ...string) string {
	t.Helper()
	out, err := c.run(t, filepath.Join(c.bin, "kubectl"), input, args...)
	require.NoError(t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	return out
}

// authority is a certificate authority made for one test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	a.cert, a.key = a.issue(t, "ca", pkix.Name{CommonName: "test"})
	return a
}

// issue writes <name>.crt and <name>.key; the first one is the authority itself.
func (a *authority) issue(t *testing.T, name string, subject pkix.Name, usages ...x509.ExtKeyUsage) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject, ExtKeyUsage: usages,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: a.cert == nil,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), signer)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: keyDER}} {
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, name+file), pem.EncodeToMemory(block), 0o600))
	}
	cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert, key
}
