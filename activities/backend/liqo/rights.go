package liqo

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TenantRights describes the permissions that the account of Config.Consumer grants itself in each tenant namespace
// on the consumer. The account may not read Secrets in other namespaces. Its other permissions are installed earlier,
// before the tenant namespaces exist.
type TenantRights struct {
	Role               string // a ClusterRole that the account may bind
	Namespace, Account string // the account's ServiceAccount
}

// binding returns a RoleBinding whose name contains the role and the account, so that it differs from the binding of an
// earlier installation.
func (r *TenantRights) binding(namespace string, labels map[string]string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels,
			Name: fmt.Sprintf("%s.%s.%s", r.Role, r.Namespace, r.Account)},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: r.Account}},
	}
}

// admit grants our account its permissions in a tenant namespace. They take effect a moment later; until then callers
// tolerate refusals. Kubernetes grants nothing in a namespace that is being removed; admit then returns nil.
func (p *peering) admit(ctx context.Context, namespace string) error {
	rights := p.config.TenantRights
	if rights == nil || namespace == "" {
		return nil
	}
	err := p.local.Create(ctx, rights.binding(namespace, p.labels()))
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return fmt.Errorf("bind ClusterRole %s in namespace %s: %w", rights.Role, namespace, err)
}

// ensureOwnNamespace makes the tenant namespace on the consumer, with our permissions in it. If the namespace is not
// ready, the result message is the reason.
func (p *peering) ensureOwnNamespace(ctx context.Context) (message string, err error) {
	p.localNS, message, err = ensureTenantNamespace(ctx, p.local, p.provider.ID, p.labels(), p.annotations())
	if err != nil || p.localNS == "" {
		return message, err
	}
	return "", p.admit(ctx, p.localNS)
}

// dismiss removes our objects from a tenant namespace that stays because it is not ours. It removes our permissions
// last.
func (p *peering) dismiss(ctx context.Context) error {
	if err := p.locate(ctx); err != nil {
		return err
	}
	if p.localNS == "" || p.ownNS || p.nsTerminating {
		return nil
	}
	if err := p.dropNetworklessOptions(ctx); err != nil {
		return err
	}
	rights := p.config.TenantRights
	if rights == nil {
		return nil
	}
	err := client.IgnoreNotFound(p.local.Delete(ctx, rights.binding(p.localNS, nil)))
	if err != nil {
		return fmt.Errorf("unbind ClusterRole %s in namespace %s: %w", rights.Role, p.localNS, err)
	}
	return nil
}

// unadmitted reports whether an error means that our account has no permissions in a tenant namespace. Such a namespace
// has no objects of ours.
func (b *Backend) unadmitted(err error) bool {
	return b.config.TenantRights != nil && apierrors.IsForbidden(err)
}
