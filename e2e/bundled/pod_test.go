package bundled

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// These are folders of the pod, as in the chart.
const (
	dataInPod   = "/var/lib/temporal"
	configInPod = "/etc/temporal-dynamic"
)

// pod runs the StatefulSet's pod as processes. It is not safe for concurrent use.
type pod struct {
	dir, data string
	address   string            // of Temporal
	ready     map[string]string // URLs of the readiness by container
	specs     map[string]proc.Spec
	processes map[string]*proc.Process
}

// containers names the containers of the pod, which all start together.
var containers = []string{"temporal", "worker", "grpcserver"}

// newPod renders the chart and prepares one process for each container. The method start starts the processes. They end
// with the test.
func newPod(t *testing.T, dir, binary string, world ...string) *pod {
	t.Helper()
	set, config := rendered(t)
	server, err := lab.BuildTemporal(t.Context(), t.Logf)
	require.NoError(t, err)
	p := &pod{dir: dir, data: filepath.Join(dir, "data"), ready: map[string]string{}, specs: map[string]proc.Spec{},
		processes: map[string]*proc.Process{}}
	for _, name := range []string{"data", "config", "bin"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	for name, text := range config.Data {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config", name), []byte(text), 0o600))
	}
	dynamic, err := exec.Command(filepath.Join(server, "server"), "validate-dynamic-config",
		filepath.Join(dir, "config", "dynamic.yaml")).CombinedOutput()
	require.NoError(t, err, "%s", dynamic)
	require.NotContains(t, string(dynamic), "warning", "every key is one that this version knows")
	require.NoError(t, os.Symlink(filepath.Join(server, "server"), filepath.Join(dir, "bin", "temporal-server")))

	ports := testkit.FreePorts(t, 15)
	p.address = ports[0]
	move := strings.NewReplacer(dataInPod, p.data, configInPod, filepath.Join(dir, "config"))
	for _, c := range set.Spec.Template.Spec.Containers {
		spec := proc.Spec{Name: c.Name, LogDir: dir}
		for _, e := range c.Env {
			spec.Env = append(spec.Env, e.Name+"="+move.Replace(e.Value))
		}
		if c.Name == "temporal" {
			require.Equal(t, "sh", c.Command[0])
			spec.Path = "sh"
			for _, arg := range c.Command[1:] {
				spec.Args = append(spec.Args, move.Replace(arg))
			}
			spec.Env = append(spec.Env, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
			spec.Env = append(spec.Env, portsOfTemporal(t, ports)...)
			p.specs[c.Name] = spec
			continue
		}
		spec.Path, spec.Args = binary, ours(c, p.address, ports, world)
		p.ready[c.Name] = "http://" + flagOf(spec.Args, "--health-listen") + "/readyz"
		p.specs[c.Name] = spec
	}
	t.Cleanup(p.kill)
	return p
}

// rendered returns the StatefulSet and the ConfigMap of its Temporal.
func rendered(t *testing.T) (set appsv1.StatefulSet, config corev1.ConfigMap) {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Skip("HELM is not set: run make e2e SUITE=bundled")
	}
	_, file, _, _ := runtime.Caller(0)
	chart := filepath.Join(filepath.Dir(file), "../../deploy/helm/liqo-autoscaler")
	out, err := exec.CommandContext(t.Context(), helm, "template", "liqo-autoscaler", chart, "--kube-version", "v1.33.1",
		"--values", filepath.Join(chart, "ci/plaintext-values.yaml"), "--set",
		"temporal.address=,temporal.bundled.enabled=true,temporal.searchAttributes=true,market.enabled=false").Output()
	require.NoError(t, err)
	for _, document := range bytes.Split(append([]byte("\n"), out...), []byte("\n---")) {
		var meta struct {
			Kind     string
			Metadata struct{ Name string }
		}
		require.NoError(t, yaml.Unmarshal(document, &meta))
		switch meta.Kind + " " + meta.Metadata.Name {
		case "StatefulSet liqo-autoscaler":
			require.NoError(t, yaml.UnmarshalStrict(document, &set))
		case "ConfigMap liqo-autoscaler-temporal":
			require.NoError(t, yaml.UnmarshalStrict(document, &config))
		}
	}
	require.Len(t, set.Spec.Template.Spec.Containers, len(containers))
	require.NotEmpty(t, config.Data)
	return set, config
}

// portsOfTemporal makes the server listen on other ports than in a pod, because on this machine some ports may be in
// use.
func portsOfTemporal(t *testing.T, addresses []string) (env []string) {
	t.Helper()
	for n, name := range []string{"FRONTEND_GRPC", "FRONTEND_HTTP", "FRONTEND_MEMBERSHIP", "MATCHING_GRPC",
		"MATCHING_MEMBERSHIP", "HISTORY_GRPC", "HISTORY_MEMBERSHIP", "WORKER_GRPC", "WORKER_MEMBERSHIP"} {
		_, port, err := net.SplitHostPort(addresses[n])
		require.NoError(t, err)
		env = append(env, name+"_PORT="+port)
	}
	return env
}

// ours returns the arguments of one of our containers, on a simulated world.
func ours(c corev1.Container, address string, ports, world []string) (args []string) {
	next := 10
	for _, arg := range c.Args {
		name, value, _ := strings.Cut(arg, "=")
		switch {
		case name == "--temporal-address":
			arg = name + "=" + address
		case strings.HasPrefix(value, ":"):
			arg = name + "=" + ports[next+slices.Index(containers, c.Name)*2-2]
			next++
		case slices.Contains([]string{"--liqo-namespace", "--tenant-role", "--offers"}, name):
			continue
		case name == "--config":
			arg = name + "=" + world[0]
		}
		args = append(args, arg)
	}
	if c.Name == "worker" {
		args = append(args, world[1:]...)
	}
	return args
}

func flagOf(args []string, flag string) string {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}

// start starts the containers that do not run, as the kubelet does.
func (p *pod) start(t *testing.T) {
	t.Helper()
	for _, name := range containers {
		if process := p.processes[name]; process != nil {
			select {
			case <-process.Done():
			default:
				continue
			}
		}
		process, err := proc.Start(p.specs[name])
		require.NoError(t, err)
		p.processes[name] = process
	}
}

// kill ends all processes as a power cut of the node would.
func (p *pod) kill() {
	for _, process := range p.processes {
		process.Kill()
	}
	clear(p.processes)
}

// readiness runs the readiness checks of the kubelet. It returns nil when the pod is ready.
func (p *pod) readiness() error {
	for _, name := range []string{"worker", "grpcserver"} {
		client := http.Client{Timeout: 2 * time.Second}
		response, err := client.Get(p.ready[name])
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", name, text)
		}
	}
	return nil
}

// becomesReady waits until the pod is ready, and restarts processes that end during the wait.
func (p *pod) becomesReady(t *testing.T) {
	t.Helper()
	testkit.Until(t, 3*time.Minute, "the pod is ready", func() error {
		p.start(t)
		return p.readiness()
	})
}
