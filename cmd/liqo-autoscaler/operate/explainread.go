package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain/manifest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
)

// explainPodFlags selects the inputs of the explanation.
type explainPodFlags struct {
	market                                    serve.Published
	kubeconfig, caNamespace, caStatus, output string
	file                                      string // a manifest instead of a pod of the cluster
}

func (f *explainPodFlags) register(cmd *cobra.Command) {
	serve.RegisterKubeconfig(cmd, &f.kubeconfig)
	f.market.Register(cmd)
	cmd.Flags().StringVar(&f.caNamespace, "ca-namespace", "", "namespace of Cluster Autoscaler's status ConfigMap "+
		"(default: "+serve.DefaultNamespace+", then kube-system)")
	cmd.Flags().StringVar(&f.caStatus, "ca-status", "cluster-autoscaler-status",
		"name of Cluster Autoscaler's status ConfigMap, as in its flag --status-config-map-name")
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "file with manifests of pods, workloads, "+
		"PodTemplates, ProvisioningRequests and CapacityBuffers; explains their pods, which need not exist, and needs no "+
		"cluster")
	registerExplained(cmd, &f.output)
}

// worlds reads the inputs of the explanation for each pod, except the node groups.
func (f explainPodFlags) worlds(ctx context.Context, hub string, args []string) ([]explain.World, error) {
	if f.file != "" {
		return f.fromFile(ctx, hub)
	}
	namespace, name, err := podNamed(args[0], f.kubeconfig)
	if errors.Is(err, errPodName) {
		return nil, err
	}
	access, err := serve.Personal(f.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w; without a cluster: --file, or liqo-autoscaler explain instance NAME", err)
	}
	kube, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("open the cluster: %w", err)
	}
	w, err := f.read(ctx, kube, hub, namespace, name)
	return []explain.World{w}, err
}

// fromFile reads the pods from a file of manifests. Its only request to the cluster is the one for the market.
func (f explainPodFlags) fromFile(ctx context.Context, hub string) (worlds []explain.World, err error) {
	planned, err := manifest.File(f.file)
	if err != nil {
		return nil, fmt.Errorf("--file %w", err)
	}
	notes := []string{"the pod's namespace, its LimitRanges and events, and Cluster Autoscaler's status: the pod is " +
		"read from a file"}
	var note strings.Builder
	market := f.market.Ask(ctx, f.kubeconfig, hub, &note)
	if market == nil {
		notes = append(notes, strings.TrimSpace("the present offers (--market-file, or access to the cluster) "+
			note.String()))
	}
	for n := range planned {
		worlds = append(worlds, explain.World{Pod: planned[n].Pod, Planned: &planned[n], Market: market, Notes: notes})
	}
	return worlds, nil
}

// read reads the cluster's objects for a pod. It returns an error only if the pod cannot be read. Any other failure
// becomes a note.
func (f explainPodFlags) read(ctx context.Context, kube kubernetes.Interface, hub, namespace,
	name string) (w explain.World, err error) {
	w.Pod, err = kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return w, fmt.Errorf("no pod %s in namespace %s", name, namespace)
	case err != nil:
		return w, fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
	}
	note := func(what string, err error) {
		if err != nil {
			w.Notes = append(w.Notes, fmt.Sprintf("%s: %v", what, err))
		}
	}
	w.Namespace, err = kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		w.Namespace = nil
	}
	note("namespace "+namespace, err)
	w.Claims, err = claimsOf(ctx, kube, w.Pod)
	note("the pod's volumes", err)
	w.Events, err = eventsOf(ctx, kube, w.Pod)
	note("the pod's events", err)
	w.Nodes, err = nodesOf(ctx, kube)
	note("the Nodes of the groups", err)
	w.Status, err = f.status(ctx, kube)
	note("Cluster Autoscaler's status", err)
	m, unread := f.market.Read(ctx, kube, hub)
	if w.Market = m; unread != "" {
		w.Notes = append(w.Notes, unread)
	}
	return w, nil
}

// claimsOf reads the volumes of the pod's bound claims.
func claimsOf(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod) (claims []explain.Claim, err error) {
	for _, v := range pod.Spec.Volumes {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name // name of the claim that Kubernetes creates
		default:
			continue
		}
		claim, err := kube.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return claims, err
		}
		if claim.Spec.VolumeName == "" {
			continue
		}
		volume, err := kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return claims, err
		}
		claims = append(claims, explain.Claim{Name: name, Volume: volume})
	}
	return claims, nil
}

// nodesOf reads the Nodes of all groups.
func nodesOf(ctx context.Context, kube kubernetes.Interface) ([]corev1.Node, error) {
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: fleet.LabelGroup})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func eventsOf(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod) (of []corev1.Event, err error) {
	only := fields.Set{"involvedObject.name": pod.Name, "involvedObject.kind": "Pod"}.AsSelector().String()
	list, err := kube.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: only})
	if err != nil {
		return nil, err
	}
	for _, e := range list.Items {
		if e.InvolvedObject.Name == pod.Name && (pod.UID == "" || e.InvolvedObject.UID == pod.UID) {
			of = append(of, e)
		}
	}
	return of, nil
}

// status returns the text in Cluster Autoscaler's status ConfigMap.
func (f explainPodFlags) status(ctx context.Context, kube kubernetes.Interface) (string, error) {
	namespaces := []string{f.caNamespace}
	if f.caNamespace == "" {
		namespaces = []string{serve.DefaultNamespace, metav1.NamespaceSystem}
	}
	var errs []error
	for _, namespace := range namespaces {
		found, err := kube.CoreV1().ConfigMaps(namespace).Get(ctx, f.caStatus, metav1.GetOptions{})
		if err == nil {
			return found.Data["status"], nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}
