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

// TenantRights are what the account of Config.Consumer gives itself in each tenant namespace on the consumer, so that
// it reads Secrets nowhere else: none of these namespaces exists when its rights are written.
type TenantRights struct {
	Role               string // a ClusterRole that it may bind
	Namespace, Account string // its own ServiceAccount
}

// binding is named after role and account: one that an earlier installation has left is another.
func (r *TenantRights) binding(namespace string, labels map[string]string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels,
			Name: fmt.Sprintf("%s.%s.%s", r.Role, r.Namespace, r.Account)},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: r.Account}},
	}
}

// admit gives our account its rights in a tenant namespace. They are in force a moment later; whoever waits puts up
// with refusals for that long. In a namespace that is being removed nobody gets any.
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

// ensureOwnNamespace makes the tenant namespace on the consumer, with our rights in it; message is what keeps it from
// being there.
func (p *peering) ensureOwnNamespace(ctx context.Context) (message string, err error) {
	p.localNS, message, err = ensureTenantNamespace(ctx, p.local, p.provider.ID, p.labels(), p.annotations())
	if err != nil || p.localNS == "" {
		return message, err
	}
	return "", p.admit(ctx, p.localNS)
}

// dismiss leaves a tenant namespace that stays, because it is not ours, without anything we own: its rights go last.
func (p *peering) dismiss(ctx context.Context) error {
	if err := p.locate(ctx); err != nil {
		return err
	}
	if p.localNS == "" || p.ownNS || p.going {
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

// unadmitted reports whether an error says that our account has no rights in a tenant namespace: then nothing we own
// is there.
func (b *Backend) unadmitted(err error) bool {
	return b.config.TenantRights != nil && apierrors.IsForbidden(err)
}
