package zz_lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func res(group, name string) schema.GroupVersionResource {
	version := "v1beta1"
	if group == "" || group == "apps" || group == "rbac.authorization.k8s.io" {
		version = "v1"
	}
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

var (
	rsRes = res("authentication.liqo.io", "resourceslices")
	tnRes = res("authentication.liqo.io", "tenants")
	noRes = res("offloading.liqo.io", "namespaceoffloadings")
)

type cl struct {
	name   string
	config string
	kube   kubernetes.Interface
	liqo   dynamic.Interface
	cut    bool
}

type world struct {
	root  string
	bin   string
	group string
	all   []*cl
}

func newWorld(t *testing.T) *world {
	root := os.Getenv("LIQO_AUTOSCALER_LAB")
	if root == "" {
		t.Skip("LIQO_AUTOSCALER_LAB is not set")
	}
	w := &world{root: root, bin: os.Getenv("LAB_BIN"), group: "contract"}
	for _, name := range []string{"consumer", "provider1", "provider2"} {
		c := &cl{name: name, config: filepath.Join(root, name+".kubeconfig")}
		config, err := clientcmd.BuildConfigFromFlags("", c.config)
		require.NoError(t, err)
		config.QPS, config.Burst = 100, 200
		c.kube, err = kubernetes.NewForConfig(config)
		require.NoError(t, err)
		c.liqo, err = dynamic.NewForConfig(config)
		require.NoError(t, err)
		w.all = append(w.all, c)
	}
	return w
}

func (w *world) consumer() *cl { return w.all[0] }
func (w *world) of(p backend.Provider) *cl {
	for _, c := range w.all {
		if c.name == p.ID {
			return c
		}
	}
	panic(p.ID)
}

func (w *world) objects(ctx context.Context) (found []backendtest.Object, err error) {
	for _, c := range w.all {
		if c.cut {
			continue
		}
		for _, r := range []schema.GroupVersionResource{
			res("", "namespaces"), res("", "secrets"), res("", "nodes"), res("", "serviceaccounts"), res("apps", "deployments"),
			res("rbac.authorization.k8s.io", "clusterrolebindings"),
			rsRes, tnRes, res("authentication.liqo.io", "identities"), res("authentication.liqo.io", "renews"),
			res("offloading.liqo.io", "virtualnodes"), res("offloading.liqo.io", "quotas"), res("offloading.liqo.io", "namespacemaps"),
		} {
			list, err := c.liqo.Resource(r).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s of %s: %w", r.Resource, c.name, err)
			}
			for _, o := range list.Items {
				ours := o.GetLabels()[backend.LabelManagedBy] == backend.ManagedBy
				derived := strings.Contains(o.GetName(), w.group+"-") && o.GetName() != w.podNS()
				if !ours && !derived {
					continue
				}
				p := o.GetLabels()["liqo.io/remote-cluster-id"]
				if c.name != "consumer" {
					p = c.name
				}
				found = append(found, backendtest.Object{Where: c.name, Provider: p, Kind: o.GetKind(), Name: o.GetName()})
			}
		}
	}
	return found, nil
}

func (w *world) podNS() string { return w.group + "-pods" }

func (w *world) offload(t *testing.T) {
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.podNS()}}
	_, err := w.consumer().kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "offloading.liqo.io/v1beta1", "kind": "NamespaceOffloading",
		"metadata": map[string]any{"name": "offloading", "namespace": w.podNS()},
		"spec":     map[string]any{"namespaceMappingStrategy": "EnforceSameName", "podOffloadingStrategy": "LocalAndRemote", "clusterSelector": map[string]any{"nodeSelectorTerms": []any{}}},
	}}
	_, err = w.consumer().liqo.Resource(noRes).Namespace(w.podNS()).Create(ctx, o, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		ns, err := w.consumer().kube.CoreV1().Namespaces().Get(ctx, w.podNS(), metav1.GetOptions{})
		return err == nil && ns.Labels["liqo.io/scheduling-enabled"] == "true"
	}, 30*time.Second, 100*time.Millisecond)
}

const podName = "contract.example.org/pod"

func (w *world) pods(ctx context.Context, node string) ([]string, error) {
	list, err := w.consumer().kube.CoreV1().Pods(w.podNS()).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, p := range list.Items {
		names = append(names, p.Labels[podName])
	}
	return names, nil
}

func (w *world) putPod(ctx context.Context, node string, pod backendtest.Pod) error {
	kube, labels := w.consumer().kube, map[string]string{podName: pod.Name}
	spec := corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("10m")}}}},
		TerminationGracePeriodSeconds: new(int64),
		Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
	var err error
	switch {
	case pod.DaemonSet:
		spec.TerminationGracePeriodSeconds = nil
		spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node}
		_, err = kube.AppsV1().DaemonSets(w.podNS()).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
			Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}},
		}, metav1.CreateOptions{})
	default:
		spec.NodeName = node
		_, err = kube.CoreV1().Pods(w.podNS()).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Labels: labels}, Spec: spec}, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if pod.Protected {
		one := intstr.FromInt32(1)
		_, err = kube.PolicyV1().PodDisruptionBudgets(w.podNS()).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		list, err := kube.CoreV1().Pods(w.podNS()).List(ctx, metav1.ListOptions{LabelSelector: podName + "=" + pod.Name})
		if err != nil || len(list.Items) != 1 || list.Items[0].Spec.NodeName != node {
			return false, err
		}
		return pod.DaemonSet || list.Items[0].Status.Phase == corev1.PodRunning, nil
	})
}

func poll(ctx context.Context, f wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, f)
}

func (w *world) putNode(ctx context.Context, name string) (backendtest.Undo, error) {
	nodes := w.consumer().kube.CoreV1().Nodes()
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err == nil { // the node lifecycle controller takes off the taint that admission has put on
		err = poll(ctx, func(ctx context.Context) (bool, error) {
			node, err := nodes.Get(ctx, name, metav1.GetOptions{})
			return err == nil && len(node.Spec.Taints) == 0, err
		})
	}
	return func(ctx context.Context) error { return ignore(nodes.Delete(ctx, name, metav1.DeleteOptions{})) }, err
}

func ignore(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (w *world) putSlice(ctx context.Context, p backend.Provider, name string) (backendtest.Undo, error) {
	slices := w.consumer().liqo.Resource(rsRes).Namespace("liqo-tenant-" + p.ID)
	_, err := slices.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"liqo.io/replication": "true", "liqo.io/remoteID": p.ID, "liqo.io/remote-cluster-id": p.ID}},
		"spec":     map[string]any{"class": "default", "providerClusterID": p.ID, "resources": map[string]any{"cpu": "1"}},
	}}, metav1.CreateOptions{})
	return func(ctx context.Context) error {
		if err := ignore(slices.Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
			return err
		}
		return poll(ctx, func(ctx context.Context) (bool, error) {
			_, err := slices.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), ignore(err)
		})
	}, err
}

func (w *world) liqoctl(ctx context.Context, p backend.Provider, args ...string) error {
	args = append(args, "--kubeconfig", w.consumer().config, "--remote-kubeconfig", w.of(p).config, "--skip-confirm")
	out, err := exec.CommandContext(ctx, filepath.Join(w.bin, "liqo", "liqoctl"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("liqoctl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (w *world) putPeering(ctx context.Context, p backend.Provider) (backendtest.Undo, error) {
	undone := false
	return func(ctx context.Context) error {
		if undone {
			return nil
		}
		if err := w.liqoctl(ctx, p, "unauthenticate"); err != nil {
			return err
		}
		undone = true
		for c, peer := range map[*cl]string{w.consumer(): p.ID, w.of(p): "consumer"} {
			if err := ignore(c.kube.CoreV1().Namespaces().Delete(ctx, "liqo-tenant-"+peer, metav1.DeleteOptions{})); err != nil {
				return err
			}
			if err := poll(ctx, func(ctx context.Context) (bool, error) {
				_, err := c.kube.CoreV1().Namespaces().Get(ctx, "liqo-tenant-"+peer, metav1.GetOptions{})
				return apierrors.IsNotFound(err), ignore(err)
			}); err != nil {
				return err
			}
		}
		return nil
	}, w.liqoctl(ctx, p, "authenticate")
}

func (w *world) signal(process string, s syscall.Signal) error {
	b, err := os.ReadFile(filepath.Join(w.root, "pids"))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line)
		if len(f) >= 2 && f[1] == process {
			pid, err := strconv.Atoi(f[0])
			if err != nil {
				return err
			}
			return syscall.Kill(pid, s)
		}
	}
	return fmt.Errorf("no process %s", process)
}

func (w *world) stop(suffix string) func(context.Context, backend.Provider) (backendtest.Undo, error) {
	return func(_ context.Context, p backend.Provider) (backendtest.Undo, error) {
		return func(context.Context) error { return w.signal(p.ID+"-"+suffix, syscall.SIGCONT) }, w.signal(p.ID+"-"+suffix, syscall.SIGSTOP)
	}
}

func (w *world) cut(ctx context.Context, p backend.Provider) (backendtest.Undo, error) {
	w.of(p).cut = true
	undo, err := w.stop("apiserver")(ctx, p)
	return func(ctx context.Context) error {
		w.of(p).cut = false
		return undo(ctx)
	}, err
}

func (w *world) deny(condition string) func(ctx context.Context, p backend.Provider) (backendtest.Undo, error) {
	return func(ctx context.Context, p backend.Provider) (backendtest.Undo, error) {
		set := func(ctx context.Context, c string) error {
			_, err := w.of(p).liqo.Resource(tnRes).Namespace("liqo-tenant-consumer").Patch(ctx, "consumer", types.MergePatchType,
				[]byte(`{"spec":{"tenantCondition":"`+c+`"}}`), metav1.PatchOptions{})
			return err
		}
		return func(ctx context.Context) error { return ignore(set(ctx, "Active")) }, set(ctx, condition)
	}
}

func (w *world) remove(r schema.GroupVersionResource) func(context.Context, backend.Attempt) error {
	return func(ctx context.Context, a backend.Attempt) error {
		return w.consumer().liqo.Resource(r).Namespace("liqo-tenant-"+a.Provider.ID).Delete(ctx, a.ObjectName(), metav1.DeleteOptions{})
	}
}

func unreachable(t *testing.T, secret string) fleet.Credentials {
	path := filepath.Join(t.TempDir(), "nobody")
	require.NoError(t, os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: "`+secret+`"}}]
`), 0o600))
	return fleet.Credentials{KubeconfigFile: path}
}

func (w *world) backend(t *testing.T) *liqo.Backend {
	config, err := clientcmd.BuildConfigFromFlags("", w.consumer().config)
	require.NoError(t, err)
	b, err := liqo.New(liqo.Config{Consumer: config})
	require.NoError(t, err)
	return b
}

func (w *world) provider(n int) backend.Provider {
	return backend.Provider{ID: w.all[n].name, Credentials: fleet.Credentials{KubeconfigFile: w.all[n].config}}
}

func TestContract(t *testing.T) {
	w := newWorld(t)
	w.offload(t)
	backendtest.Run(t, backendtest.Harness{
		Backend: w.backend(t), Other: w.backend(t),
		Providers: [2]backend.Provider{w.provider(1), w.provider(2)},
		Shape:     corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("20")},
		Group:     w.group,
		Bound:     2 * time.Minute,
		World: backendtest.World{
			Objects: w.objects,
			Node: func(ctx context.Context, name string) (*corev1.Node, error) {
				return w.consumer().kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			},
			PutPod: w.putPod, Pods: w.pods, PutSlice: w.putSlice, PutNode: w.putNode, PutPeering: w.putPeering,
			Unreachable: unreachable,
			DeleteNode: func(ctx context.Context, a backend.Attempt) error {
				return w.consumer().kube.CoreV1().Nodes().Delete(ctx, a.ObjectName(), metav1.DeleteOptions{})
			},
			DeleteVirtualNode: w.remove(res("offloading.liqo.io", "virtualnodes")), DeleteSlice: w.remove(rsRes),
			SetProviderID: func(ctx context.Context, node, id string) error {
				_, err := w.consumer().kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"spec":{"providerID":"`+id+`"}}`), metav1.PatchOptions{})
				return err
			},
			Stall: w.stop("liqo-cm"), StallStage: backend.StageNonce,
			Cut: w.cut, Deny: w.deny("Cordoned"),
		},
	})
}

func q(s string) *resource.Quantity {
	v := resource.MustParse(s)
	return &v
}
