package liqo_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The functions of backendtest.World make the changes that an administrator with kubectl on the clusters can make.

func (l *lab) node(ctx context.Context, name string) (*corev1.Node, error) {
	return l.clusters[consumer].kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

func (l *lab) putNode(ctx context.Context, name string) (backendtest.Undo, error) {
	nodes := l.clusters[consumer].kube.CoreV1().Nodes()
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err == nil { // the node lifecycle controller removes the taint that admission has set
		err = poll(ctx, func(ctx context.Context) (bool, error) {
			node, err := nodes.Get(ctx, name, metav1.GetOptions{})
			return err == nil && len(node.Spec.Taints) == 0, err
		})
	}
	return func(ctx context.Context) error {
		return ignoreNotFound(nodes.Delete(ctx, name, metav1.DeleteOptions{}))
	}, err
}

func (l *lab) setProviderID(ctx context.Context, node, id string) error {
	_, err := l.clusters[consumer].kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType,
		[]byte(`{"spec":{"providerID":"`+id+`"}}`), metav1.PatchOptions{})
	return err
}

func (l *lab) sliceThere(ctx context.Context, a fleet.Attempt) (map[string]string, error) {
	slice, err := l.clusters[a.Provider.ID].any.Resource(authentication("resourceslices")).
		Namespace("liqo-tenant-"+consumer).Get(ctx, a.ObjectName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return slice.GetAnnotations(), nil
}

func (l *lab) deleteNode(ctx context.Context, a fleet.Attempt) error {
	return l.clusters[consumer].kube.CoreV1().Nodes().Delete(ctx, a.ObjectName(), metav1.DeleteOptions{})
}

// remove deletes the attempt's object of a kind.
func (l *lab) remove(kind schema.GroupVersionResource) func(context.Context, fleet.Attempt) error {
	return func(ctx context.Context, a fleet.Attempt) error {
		return l.clusters[consumer].any.Resource(kind).Namespace("liqo-tenant-"+a.Provider.ID).Delete(ctx, a.ObjectName(),
			metav1.DeleteOptions{})
	}
}

func (l *lab) putSlice(ctx context.Context, p fleet.Provider, name string) (backendtest.Undo, error) {
	slices := l.clusters[consumer].any.Resource(authentication("resourceslices")).Namespace("liqo-tenant-" + p.ID)
	_, err := slices.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1",
		"kind":       "ResourceSlice",
		"metadata": map[string]any{"name": name, "labels": map[string]any{
			"liqo.io/replication": "true", "liqo.io/remoteID": p.ID, "liqo.io/remote-cluster-id": p.ID}},
		"spec": map[string]any{"class": "default", "providerClusterID": p.ID, "resources": map[string]any{"cpu": "1"}},
	}}, metav1.CreateOptions{})
	return func(ctx context.Context) error {
		if err := ignoreNotFound(slices.Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
			return err
		}
		return poll(ctx, func(ctx context.Context) (bool, error) {
			_, err := slices.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), ignoreNotFound(err)
		})
	}, err
}

func (l *lab) liqoctl(ctx context.Context, verb string, from, to *cluster) error {
	out, err := exec.CommandContext(ctx, filepath.Join(l.bin, "liqo", "liqoctl"), verb,
		"--kubeconfig", from.kubeconfig, "--remote-kubeconfig", to.kubeconfig, "--skip-confirm").CombinedOutput()
	if err != nil {
		return fmt.Errorf("liqoctl %s: %w\n%s", verb, err, out)
	}
	return nil
}

// unpeerByHand removes a peering step by step. `liqoctl unauthenticate` alone deletes Identity and Tenant
// concurrently. Then crd-replicator may lose its permission before it has removed its finalizers from the Identity's
// Renew and kubeconfig.
func (l *lab) unpeerByHand(ctx context.Context, from, to *cluster) error {
	namespace := "liqo-tenant-" + to.name
	err := from.any.Resource(authentication("identities")).Namespace(namespace).Delete(ctx, "controlplane-"+to.name,
		metav1.DeleteOptions{})
	if ignoreNotFound(err) != nil {
		return err
	}
	err = poll(ctx, func(ctx context.Context) (bool, error) {
		renews, err := from.any.Resource(authentication("renews")).Namespace(namespace).List(ctx,
			metav1.ListOptions{LabelSelector: "liqo.io/replication=true"})
		if err != nil || len(renews.Items) > 0 {
			return false, err
		}
		secrets, err := from.kube.CoreV1().Secrets(namespace).List(ctx,
			metav1.ListOptions{LabelSelector: "liqo.io/identity-type=ControlPlane"})
		return err == nil && len(secrets.Items) == 0, err
	})
	if err != nil {
		return err
	}
	return l.liqoctl(ctx, "unauthenticate", from, to)
}

func (l *lab) putPeering(ctx context.Context, p fleet.Provider) (backendtest.Undo, error) {
	here, there, undone := l.clusters[consumer], l.clusters[p.ID], false
	return func(ctx context.Context) error {
		if undone {
			return nil
		}
		if err := l.unpeerByHand(ctx, here, there); err != nil {
			return err
		}
		undone = true
		if err := here.removeNamespace(ctx, "liqo-tenant-"+p.ID); err != nil {
			return err
		}
		return there.removeNamespace(ctx, "liqo-tenant-"+consumer)
	}, l.liqoctl(ctx, "authenticate", here, there)
}

// stall stops the provider's Liqo. The provider's API server keeps running.
func (l *lab) stall(_ context.Context, p fleet.Provider) (backendtest.Undo, error) {
	process := p.ID + "-liqo-cm"
	return func(context.Context) error { return l.signal(process, syscall.SIGCONT) }, l.signal(process, syscall.SIGSTOP)
}

// cut stops the provider's API server, so that it accepts connections and never answers.
func (l *lab) cut(_ context.Context, p fleet.Provider) (backendtest.Undo, error) {
	process := p.ID + "-apiserver"
	l.clusters[p.ID].cut = true
	return func(context.Context) error {
		l.clusters[p.ID].cut = false
		return l.signal(process, syscall.SIGCONT)
	}, l.signal(process, syscall.SIGSTOP)
}

// deny sets our Tenant to a condition, as liqoctl cordon or drain on the provider does.
func (l *lab) deny(condition string) func(context.Context, fleet.Provider) (backendtest.Undo, error) {
	return func(ctx context.Context, p fleet.Provider) (backendtest.Undo, error) {
		set := func(ctx context.Context, condition string) error {
			_, err := l.clusters[p.ID].any.Resource(authentication("tenants")).Namespace("liqo-tenant-"+consumer).Patch(ctx,
				consumer,
				types.MergePatchType, []byte(`{"spec":{"tenantCondition":"`+condition+`"}}`), metav1.PatchOptions{})
			return err
		}
		return func(ctx context.Context) error { return ignoreNotFound(set(ctx, "Active")) }, set(ctx, condition)
	}
}

// close cordons, drains or deletes our Tenant, as the provider's administrators can.
func (l *lab) close(ctx context.Context, p fleet.Provider, kind fleet.RefusingKind) (backendtest.Undo, error) {
	if kind != fleet.RefusingRemoved {
		return l.deny(string(kind))(ctx, p)
	}
	return func(context.Context) error { return nil }, l.revoke(ctx, p)
}

// revoke removes our Tenant, as the provider's administrators can.
func (l *lab) revoke(ctx context.Context, p fleet.Provider) error {
	tenants := l.clusters[p.ID].any.Resource(authentication("tenants")).Namespace("liqo-tenant-" + consumer)
	if err := tenants.Delete(ctx, consumer, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := tenants.Get(ctx, consumer, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
}

func unreachable(t *testing.T, secret string) fleet.Credentials {
	path := filepath.Join(t.TempDir(), "nobody.kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: "SECRET"}}]
`, "SECRET", secret)), 0o600))
	return fleet.Credentials{KubeconfigFile: path}
}
