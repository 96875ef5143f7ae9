package e2e_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// address returns host:port of a cluster's API server.
func (i *installation) address(cluster string) string {
	i.t.Helper()
	u, err := url.Parse(restConfig(i.t, i.lab.Kubeconfig(cluster)).Host)
	require.NoError(i.t, err)
	return u.Host
}

// providerURL returns the URL at which containers reach the provider's API server.
func (i *installation) providerURL() string {
	_, port, err := net.SplitHostPort(i.address(i.lab.Providers[0]))
	require.NoError(i.t, err)
	return "https://" + net.JoinHostPort(roomNodeIP, port)
}

// forward accepts connections at one address until the test ends, and connects them with another address.
func (i *installation) forward(from, to string) {
	i.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(i.t.Context(), "tcp", from)
	require.NoError(i.t, err)
	i.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := (&net.Dialer{}).DialContext(i.t.Context(), "tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in); _ = out.(*net.TCPConn).CloseWrite() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
}

// volume makes a local volume for Temporal's claim, in place of a cluster's storage.
func (i *installation) volume(ctx context.Context) {
	i.t.Helper()
	path := filepath.Join("/var", "temporal-volume")
	require.NoError(i.t, os.MkdirAll(path, 0o755))
	_, err := i.consumer.kube.CoreV1().PersistentVolumes().Create(ctx, manifest[corev1.PersistentVolume](i.t, `
metadata: {name: temporal}
spec:
  capacity: {storage: 2Gi}
  accessModes: [ReadWriteOncePod]
  local: {path: `+path+`}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [`+realNode+`]}]}]}
`), metav1.CreateOptions{})
	require.NoError(i.t, err)
}

// prepareCommands makes the folder and the environment of the guide's commands: the files that the guide shows, and the
// contexts munich and milan.
func (i *installation) prepareCommands(ctx context.Context) {
	i.t.Helper()
	both, err := clientcmd.LoadFromFile(i.lab.Kubeconfig(lab.Consumer))
	require.NoError(i.t, err)
	other, err := clientcmd.LoadFromFile(i.lab.Kubeconfig(i.lab.Providers[0]))
	require.NoError(i.t, err)
	both.Contexts["munich"] = both.Contexts[both.CurrentContext]
	milan := other.Contexts[other.CurrentContext]
	both.Clusters["milan"], both.AuthInfos["milan"] = other.Clusters[milan.Cluster], other.AuthInfos[milan.AuthInfo]
	milan.Cluster, milan.AuthInfo = "milan", "milan"
	both.Contexts["milan"], both.CurrentContext = milan, "munich"
	path := filepath.Join(i.dir, "kubeconfig")
	require.NoError(i.t, clientcmd.WriteToFile(*both, path))
	require.NoError(i.t, os.Symlink(filepath.Join(sources(i.t), "deploy"), filepath.Join(i.dir, "deploy")))
	_, files := guide(i.t)
	for name, text := range files {
		require.NoError(i.t, os.WriteFile(filepath.Join(i.dir, name), []byte(text), 0o600))
	}
	i.env = append(os.Environ(), "KUBECONFIG="+path, "HELM_CACHE_HOME="+i.dir, "HELM_CONFIG_HOME="+i.dir,
		"HELM_DATA_HOME="+i.dir, "PATH="+strings.Join([]string{os.Getenv(envImages), i.lab.Bin, os.Getenv("PATH")}, ":"))
}

// withLibraries adds the shared libraries of the programs sh and flock, at the paths at which their loader finds them.
func withLibraries(ctx context.Context, t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(ctx, "ldd", files["bin/sh"], files["bin/flock"]).Output()
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1) {
		files[m[1][1:]] = m[1]
	}
	return files
}

// guide returns those commands of docs/install.md that `make deploy-check` runs. It also returns the guide's files by
// name, except values.yaml, which setup writes.
func guide(t *testing.T) (commands []string, files map[string]string) {
	t.Helper()
	files = map[string]string{}
	for _, step := range testkit.Guide(t, filepath.Join(sources(t), "docs", "install.md")) {
		switch step.File {
		case "":
			commands = append(commands, step.Text)
		case "values.yaml":
		default:
			files[step.File] = step.Text
		}
	}
	return commands, files
}
