package keep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/pids"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// lab holds the state that the clusters of a lab share.
type lab struct {
	Config
	pki pki

	mu          sync.Mutex
	processes   []*proc.Process // all processes that were started
	kubeletPort map[int]bool    // virtual kubelets' ports in use
	kubelets    []*kubelet      // the running ones
}

// cluster is one Kubernetes cluster with Liqo.
type cluster struct {
	*lab
	name       string // the name is also the Liqo cluster id
	index      int    // 0 is the consumer
	ports      ports
	url        string
	kubeconfig string

	kube    kubernetes.Interface
	objects dynamic.Interface

	containers []container // Liqo's processes, which are started again when they end
}

func (l *lab) cluster(name string, index int) (*cluster, error) {
	c := &cluster{lab: l, name: name, index: index, ports: l.ports(index), kubeconfig: filepath.Join(l.Root,
		name+".kubeconfig")}
	c.url = "https://" + loopback(c.ports.api)
	if err := c.writeKubeconfig(); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1 // without a rate limit
	config.WarningHandler = rest.NoWarnings{}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make client of %s: %w", name, err)
	}
	if c.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make client of %s: %w", name, err)
	}
	return c, nil
}

// writeKubeconfig writes the kubeconfig of the administrator, including the administrator's certificate and key.
func (c *cluster) writeKubeconfig() error {
	var inline [3][]byte
	for i, path := range []string{c.pki.caCert, c.pki.adminCert, c.pki.adminKey} {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", c.name, err)
		}
		inline[i] = b
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = c.name
	config.Clusters[c.name] = &clientcmdapi.Cluster{Server: c.url, CertificateAuthorityData: inline[0]}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: inline[1], ClientKeyData: inline[2]}
	config.Contexts[c.name] = &clientcmdapi.Context{Cluster: c.name, AuthInfo: "admin"}
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", c.name, err)
	}
	return nil
}

// start starts one process of the cluster, and adds it to the list of processes. The log of the process is in
// <root>/log.
func (c *cluster) start(name, path string, args, env []string) (*proc.Process, error) {
	return c.startSpec(proc.Spec{Name: name, Path: path, Args: args, Env: env})
}

func (c *cluster) startSpec(s proc.Spec) (*proc.Process, error) {
	s.Name, s.Dir, s.LogDir = c.name+"-"+s.Name, c.Root, filepath.Join(c.Root, "log")
	p, err := proc.Start(s)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	return p, pids.Append(c.Root, s.Name, p.Pid())
}

func (c *cluster) bin(name string) string  { return filepath.Join(c.Bin, name) }
func (c *cluster) liqo(name string) string { return filepath.Join(c.Bin, "liqo", name) }

// flags joins names and values to arguments: flags("--a", "1", "--b", "2") returns --a=1 and --b=2.
func flags(pairs ...string) []string {
	out := make([]string, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, strings.Join(pairs[i:i+2], "="))
	}
	return out
}
