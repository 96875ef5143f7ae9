package doctor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/liqoversion"
)

// Liqo sets labelPeer and annotationMap on the namespaces that it creates for other clusters. The label contains the
// id of the cluster. If a NamespaceMap requested the namespace, the annotation contains the name of this NamespaceMap
// (Liqo pkg/consts/namespace_mapping.go).
const (
	labelPeer     = "liqo.io/remote-cluster-id"
	annotationMap = "liqo.io/managed-by-namespace-map"
)

// workload holds the common fields of a Deployment and a StatefulSet.
type workload struct {
	kind, namespace, name string
	replicas              *int32
	ready                 int32
	pod                   corev1.PodSpec
}

// process is a container of a workload that the checks examine.
type process struct {
	workload
	container *corev1.Container
}

func (w workload) where() string { return w.kind + " " + w.namespace + "/" + w.name }

// flag returns the value of the flag --name of the process. The result ok is false if the flag is not set. A flag
// without a value has the value "true".
func (p process) flag(name string) (value string, ok bool) {
	args := slices.Concat(p.container.Command, p.container.Args)
	for n, arg := range args {
		key, v, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if !strings.HasPrefix(arg, "-") || key != name {
			continue
		}
		switch {
		case has:
		case n+1 < len(args) && !strings.HasPrefix(args[n+1], "-"): // --name value
			v = args[n+1]
		default:
			v = "true"
		}
		value, ok = v, true
	}
	return value, ok
}

// isAutoscaler reports whether the process is a Cluster Autoscaler. A cloud controller manager also has the flag
// --cloud-provider.
func (p process) isAutoscaler() bool {
	return strings.Contains(path.Base(p.container.Image), "cluster-autoscaler") ||
		len(p.container.Command) > 0 && path.Base(p.container.Command[0]) == "cluster-autoscaler"
}

// tag returns the version in the image's name, or "".
func (p process) tag() string {
	_, tag, _ := strings.Cut(path.Base(p.container.Image), ":")
	tag, _, _ = strings.Cut(tag, "@")
	return tag
}

// cluster holds the objects of the consumer cluster that several checks use. They are read only once.
type cluster struct {
	kube    kubernetes.Interface
	version *version.Version
	groups  []string // the API groups
	// servers, workers and autoscalers are the processes of each program. They are complete only if deployments is true.
	deployments                   bool
	servers, workers, autoscalers []process
	foreign                       []process          // Cluster Autoscalers of other cloud providers
	liqo                          *appsv1.Deployment // its controller manager
	nodes                         []corev1.Node      // virtual nodes
	otherNodes                    int                // number of Nodes that are not virtual
	schemes                       map[string]int     // number of otherNodes by the scheme of their providerIDs
	offloaded                     int                // number of offloaded namespaces; -1 when it is unknown
	peers                         []corev1.Namespace // namespaces that Liqo has created for other clusters
}

// readCluster reads the objects that the checks share. It records unreadable objects in the report.
func readCluster(ctx context.Context, in Installation, r *Report) *cluster {
	c := &cluster{kube: in.Kube, offloaded: -1}
	v, err := in.Kube.Discovery().ServerVersion()
	if err == nil {
		c.version, err = version.ParseGeneric(v.GitVersion)
	}
	r.skipped("version of the consumer's Kubernetes", err)
	if list, err := in.Kube.Discovery().ServerGroups(); !r.skipped("APIs of the consumer cluster", err) {
		for _, g := range list.Groups {
			c.groups = append(c.groups, g.Name)
		}
	}
	list, err := in.Kube.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if !r.skipped("Deployments", err) {
		c.deployments = true
		for n := range list.Items {
			d := &list.Items[n]
			if d.Name == liqoversion.Deployment {
				c.liqo = d
				continue
			}
			c.classify(workload{"Deployment", d.Namespace, d.Name, d.Spec.Replicas, d.Status.ReadyReplicas,
				d.Spec.Template.Spec})
		}
	}
	c.readSets(ctx, r)
	if list, err := in.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !r.skipped("Nodes", err) {
		c.sortNodes(list.Items)
	}
	offloaded := metav1.ListOptions{LabelSelector: "liqo.io/scheduling-enabled=true"}
	if list, err := in.Kube.CoreV1().Namespaces().List(ctx, offloaded); !r.skipped("Namespaces", err) {
		c.offloaded = len(list.Items)
		peers := metav1.ListOptions{LabelSelector: labelPeer}
		if list, err := in.Kube.CoreV1().Namespaces().List(ctx, peers); !r.skipped("namespaces of other clusters", err) {
			c.peers = list.Items
		}
	}
	return c
}

// readSets reads the StatefulSets. With a bundled Temporal, one StatefulSet runs all processes.
func (c *cluster) readSets(ctx context.Context, r *Report) {
	list, err := c.kube.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{})
	if r.skipped("StatefulSets", err) {
		c.deployments = false
		return
	}
	for n := range list.Items {
		s := &list.Items[n]
		before := len(c.workers)
		c.classify(workload{"StatefulSet", s.Namespace, s.Name, s.Spec.Replicas, s.Status.ReadyReplicas,
			s.Spec.Template.Spec})
		if len(c.workers) > before {
			r.claims(ctx, c, s)
		}
	}
}

// classify adds each container of a workload to servers, workers, autoscalers or foreign.
func (c *cluster) classify(w workload) {
	for n := range w.pod.Containers {
		p := process{w, &w.pod.Containers[n]}
		provider, _ := p.flag("cloud-provider")
		switch args := p.container.Args; {
		case provider == "externalgrpc":
			c.autoscalers = append(c.autoscalers, p)
		case provider != "" && p.isAutoscaler():
			c.foreign = append(c.foreign, p)
		case len(args) > 0 && args[0] == "grpcserver":
			c.servers = append(c.servers, p)
		case len(args) > 0 && args[0] == "worker":
			c.workers = append(c.workers, p)
		}
	}
}

// sortNodes stores the virtual nodes, and counts the other Nodes by the schemes of their providerIDs.
func (c *cluster) sortNodes(all []corev1.Node) {
	c.schemes = map[string]int{}
	for _, node := range all {
		if node.Labels["liqo.io/type"] == "virtual-node" {
			c.nodes = append(c.nodes, node)
			continue
		}
		c.otherNodes++
		c.schemes[schemeOf(node.Spec.ProviderID)]++
	}
}

// file reads a file of a container from its Secret or ConfigMap.
func (c *cluster) file(ctx context.Context, p process, name string) ([]byte, error) {
	for _, mount := range p.container.VolumeMounts {
		key, below := strings.CutPrefix(name, strings.TrimSuffix(mount.MountPath, "/")+"/")
		if !below {
			continue
		}
		for _, v := range p.pod.Volumes {
			if v.Name == mount.Name {
				return c.fromVolume(ctx, p.namespace, v, key)
			}
		}
	}
	return nil, fmt.Errorf("no volume of %s contains %s", p.where(), name)
}

var errNotThere = errors.New("is missing")

func (c *cluster) fromVolume(ctx context.Context, namespace string, v corev1.Volume, key string) ([]byte, error) {
	var what string
	var content []byte
	var err error
	switch {
	case v.Secret != nil:
		what = "Secret " + namespace + "/" + v.Secret.SecretName
		secret, e := c.kube.CoreV1().Secrets(namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err = e; e == nil {
			content = secret.Data[key]
		}
	case v.ConfigMap != nil:
		what = "ConfigMap " + namespace + "/" + v.ConfigMap.Name
		found, e := c.kube.CoreV1().ConfigMaps(namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err = e; e == nil {
			content = []byte(found.Data[key])
		}
	default:
		return nil, fmt.Errorf("volume %s is neither a Secret nor a ConfigMap", v.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("%s: key %s %w", what, key, errNotThere)
	}
	return content, nil
}
