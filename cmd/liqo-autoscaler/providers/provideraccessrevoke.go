package providers

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

func newProviderAccessRevoke() *cobra.Command {
	var f consumerFlags
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: "End a consumer's access to this provider",
		Long: `End a consumer's access to this provider. The command sets the consumer's Tenant to Drained. Liqo then removes the
permissions of the consumer's certificates and withdraws its slices, so the consumer's nodes, and their pods on this
provider, end. The command then replaces the account of provider-access, so that all tokens of the account become
invalid. The consumer's worker reports that the provider refuses. To restore the access, set tenantCondition to Active,
and create a new kubeconfig with provider-access kubeconfig. Run this command as the provider's administrator. You can
run it again at any time.`,
		Example: "  liqo-autoscaler provider-access revoke --consumer-id munich --kubeconfig milan.kubeconfig",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE: cli.Brief(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			a, err := openAdmins(kubeconfig)
			if err != nil {
				return err
			}
			return a.revoke(ctx, f.id, cmd.OutOrStdout())
		}),
	}
	f.register(cmd)
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "access to the provider's cluster (default: as kubectl finds it)")
	return cmd
}

// revoke drains the consumer's Tenants and replaces the consumer's account. This makes all tokens of the account
// invalid.
func (a admins) revoke(ctx context.Context, id string, out io.Writer) error {
	all, err := a.consumers(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(c consumer) bool { return c.id == id })
	if at < 0 {
		return fmt.Errorf("consumer %s has no access to this provider: provider-access list shows the consumers with "+
			"access", id)
	}
	found := all[at]
	for i := range found.tenants {
		t := &found.tenants[i]
		_, err := a.objects.Resource(tenants).Namespace(t.GetNamespace()).Patch(ctx, t.GetName(), types.MergePatchType,
			[]byte(`{"spec": {"tenantCondition": "Drained"}}`), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("drain Tenant %s/%s: %w", t.GetNamespace(), t.GetName(), err)
		}
		fmt.Fprintf(out, "Tenant %s/%s is Drained: Liqo withdraws its %d "+
			"slices\n", t.GetNamespace(), t.GetName(), found.slices)
	}
	if found.account.IsZero() {
		fmt.Fprintf(out, "consumer %s has no account of provider-access\n", id)
		return nil
	}
	if err := a.renewAccount(ctx, provider.Account(id)); err != nil {
		return err
	}
	fmt.Fprintf(out, "all tokens of ServiceAccount %s/%s are invalid now\n", provider.Namespace, provider.Account(id))
	return nil
}

// renewAccount deletes an account and creates it again. This makes the account's tokens invalid, because a token
// contains the UID of its account. If the creation fails, the administrator must apply the output of provider-access.
func (a admins) renewAccount(ctx context.Context, name string) error {
	accounts := a.kube.CoreV1().ServiceAccounts(provider.Namespace)
	old, err := accounts.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read ServiceAccount %s/%s: %w", provider.Namespace, name, err)
	}
	err = accounts.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ServiceAccount %s/%s: %w", provider.Namespace, name, err)
	}
	_, err = accounts.Create(ctx, &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Name: name, Labels: old.Labels, Annotations: old.Annotations},
		AutomountServiceAccountToken: old.AutomountServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create ServiceAccount %s/%s again, whose tokens are invalid: %w: apply the output of "+
			"provider-access",
			provider.Namespace, name, err)
	}
	return nil
}
