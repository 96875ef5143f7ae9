package liqo

import (
	"context"
	"fmt"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reachable reports done when Liqo itself reaches the provider at the address that the provider advertises, which may
// differ from the address in our credentials. Liqo's ForeignCluster shows this, but may be out of date. When an
// Identity is deleted before its kubeconfig, Liqo keeps the old status of the ForeignCluster until its next resync,
// hours later (Liqo foreigncluster-controller/status.go). Therefore reachable also requires that the provider has
// answered the Renew, Liqo's request to renew the new Identity's certificate.
func (p *peering) reachable(ctx context.Context) (bool, string, error) {
	status, message, err := p.apiServerStatus(ctx)
	if err != nil || status != liqov1beta1.ConditionStatusEstablished {
		return false, message, err
	}
	identity, err := p.controlPlaneIdentity(ctx)
	if err != nil { // a peering that was made by hand with a Secret has no Identity
		return apierrors.IsNotFound(err), "", client.IgnoreNotFound(err)
	}
	var renew authv1beta1.Renew
	err = p.local.Get(ctx, client.ObjectKeyFromObject(identity), &renew)
	if apierrors.IsNotFound(err) {
		return p.settled(ctx)
	}
	if err != nil {
		return false, "", fmt.Errorf("read Renew: %w", err)
	}
	if renew.Status.AuthParams == nil {
		return false, fmt.Sprintf("the provider has not answered Renew %s/%s yet", renew.Namespace, renew.Name), nil
	}
	return true, "", nil
}

// settled reports done when the kubeconfig is older than graces.renew: a version of Liqo that makes Renews would have
// made one by then.
func (p *peering) settled(ctx context.Context) (bool, string, error) {
	secrets, err := p.controlPlaneSecrets(ctx)
	if err != nil {
		return false, "", err
	}
	for i := range secrets {
		if time.Since(secrets[i].CreationTimestamp.Time) > p.graces.renew {
			return true, "", nil
		}
	}
	return false, "waiting for this cluster's liqo-controller-manager to create a Renew", nil
}

// apiServerStatus returns Liqo's own status of the provider's API server, with a message about it.
func (p *peering) apiServerStatus(ctx context.Context) (status liqov1beta1.ConditionStatusType, message string,
	err error) {
	var foreign liqov1beta1.ForeignCluster
	err = p.local.Get(ctx, client.ObjectKey{Name: p.provider.ID}, &foreign)
	if apierrors.IsNotFound(err) {
		return liqov1beta1.ConditionStatusNone, "ForeignCluster " + p.provider.ID + " does not exist yet", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("read ForeignCluster: %w", err)
	}
	if !foreign.Status.Modules.Authentication.Enabled {
		return liqov1beta1.ConditionStatusNone, "ForeignCluster " + p.provider.ID + " does not show the authentication yet",
			nil
	}
	for _, condition := range foreign.Status.Conditions {
		if condition.Type == liqov1beta1.APIServerStatusCondition {
			return condition.Status, fmt.Sprintf("Liqo reports the provider's API server at %s as %s: %s",
				foreign.Status.APIServerURL, condition.Status, condition.Message), nil
		}
	}
	return liqov1beta1.ConditionStatusNone, fmt.Sprintf("Liqo has not tried the provider's API server at %s yet",
		foreign.Status.APIServerURL), nil
}
