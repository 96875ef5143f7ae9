package liqo

import (
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// tenantNamespace finds the namespace that a cluster has for a peer. It finds the namespace by labels, because users
// may choose the name. With an account that may not list namespaces, it reads the namespace by its usual name (Liqo
// pkg/tenantNamespace/namespaceManager.go). Errors: NotFound if no such namespace exists, ErrInvalid if two exist.
func tenantNamespace(ctx context.Context, cluster client.Client, peer string) (*corev1.Namespace, error) {
	var found corev1.NamespaceList
	err := cluster.List(ctx, &found, client.MatchingLabels{consts.RemoteClusterID: peer},
		client.HasLabels{consts.TenantNamespaceLabel})
	if apierrors.IsForbidden(err) {
		var usual corev1.Namespace
		unread := cluster.Get(ctx, client.ObjectKey{Name: tenantNamespaceName(peer)}, &usual)
		if unread != nil && !apierrors.IsNotFound(unread) && !apierrors.IsForbidden(unread) {
			return nil, unread
		}
		if unread != nil || !isTenantNamespace(&usual, peer) {
			return nil, err
		}
		return &usual, nil
	}
	if err != nil {
		return nil, err
	}
	switch len(found.Items) {
	case 0:
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), tenantNamespaceName(peer))
	case 1:
		return &found.Items[0], nil
	default:
		return nil, errorf(backend.ErrInvalid, "namespaces %s and %s both claim to be the tenant namespace of %s: remove one",
			found.Items[0].Name, found.Items[1].Name, peer)
	}
}

func isTenantNamespace(namespace *corev1.Namespace, peer string) bool {
	_, labelled := namespace.Labels[consts.TenantNamespaceLabel]
	return labelled && namespace.Labels[consts.RemoteClusterID] == peer
}

func tenantNamespaceName(peer string) string { return "liqo-tenant-" + peer }

// ensureTenantNamespace finds the namespace or makes it, with our labels and the given annotations. The name is ""
// while an old namespace is still being removed.
func ensureTenantNamespace(ctx context.Context, cluster client.Client, peer string, labels,
	annotations map[string]string) (name, message string, err error) {
	found, err := tenantNamespace(ctx, cluster, peer)
	if client.IgnoreNotFound(err) != nil {
		return "", "", err
	}
	if err != nil {
		found = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:        tenantNamespaceName(peer),
			Annotations: annotations,
			Labels: with(labels, map[string]string{
				consts.RemoteClusterID:              peer,
				consts.TenantNamespaceLabel:         "true",
				consts.PodSecurityAuditLevelLabel:   consts.PodSecurityLevelPrivileged,
				consts.PodSecurityEnforceLevelLabel: consts.PodSecurityLevelPrivileged,
				consts.PodSecurityWarnLevelLabel:    consts.PodSecurityLevelPrivileged,
			}),
		}}
		if err := cluster.Create(ctx, found); err != nil {
			return "", "", fmt.Errorf("create namespace %s: %w", found.Name, err)
		}
	}
	if found.DeletionTimestamp != nil {
		return "", fmt.Sprintf("namespace %s of an earlier peering is being removed", found.Name), nil
	}
	return found.Name, "", nil
}
