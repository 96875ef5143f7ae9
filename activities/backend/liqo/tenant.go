package liqo

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// ensureTenant makes our Tenant on the provider. It returns the Tenant once the Tenant contains credentials for our
// key, and nil before. In an existing Tenant it writes only our own fields. It never writes tenantCondition, because
// the provider's administrators use this field to refuse us.
func (p *peering) ensureTenant(ctx context.Context, h handshake) (tenant *authv1beta1.Tenant, message string,
	err error) {
	tenant, err = p.tenant(ctx)
	if apierrors.IsNotFound(err) {
		return nil, "Tenant was made", p.createTenant(ctx, h)
	}
	if err != nil {
		return nil, "", err
	}
	if err := checkTenant(tenant); err != nil {
		return nil, "", err
	}
	name := tenant.Namespace + "/" + tenant.Name
	switch {
	case tenant.DeletionTimestamp != nil:
		return nil, fmt.Sprintf("Tenant %s of an earlier peering is being removed: the provider's liqo-controller-manager "+
			"has to let it go", name), nil
	case !p.mine(tenant):
		return nil, "", errorf(backend.ErrConflict, "somebody else is making this peering now: Tenant %s has appeared", name)
	}
	if err := p.refreshTenant(ctx, tenant, h); err != nil {
		return nil, "", err
	}
	if certifies(tenant.Status.AuthParams, h.publicDER) {
		return tenant, "", nil
	}
	message = fmt.Sprintf("the provider has not answered Tenant %s yet", name)
	if warning := p.lastWarning(ctx, tenant); warning != "" {
		message += ": " + warning
	}
	return nil, message, nil
}

// checkTenant returns a refusal when the provider's administrators have cordoned or drained the Tenant.
func checkTenant(tenant *authv1beta1.Tenant) error {
	if refusing := refusingOf(tenant); refusing != nil {
		return refuse(*refusing)
	}
	return nil
}

func (p *peering) createTenant(ctx context.Context, h handshake) error {
	csr, err := authentication.GenerateCSRForControlPlane(h.key, liqov1beta1.ClusterID(p.self.id))
	if err != nil {
		return fmt.Errorf("make certificate request: %w", err)
	}
	return p.remote.do(ctx, "create our Tenant", func(provider client.Client) error {
		return provider.Create(ctx, &authv1beta1.Tenant{
			ObjectMeta: metav1.ObjectMeta{
				Name:      p.self.id,
				Namespace: p.remoteNS,
				Labels:    with(p.signed(), map[string]string{consts.RemoteClusterID: p.self.id}),
			},
			Spec: authv1beta1.TenantSpec{
				ClusterID: liqov1beta1.ClusterID(p.self.id),
				PublicKey: publicPEM(h.publicDER),
				CSR:       csr,
				Signature: h.signature,
			},
		})
	})
}

// refreshTenant patches key, certificate request and signature if they do not match our key and the present nonce, and
// removes the mark of a refusal that has ended. It keeps a request that was made with our key, because the provider
// refuses a different request for the same certificate.
func (p *peering) refreshTenant(ctx context.Context, tenant *authv1beta1.Tenant, h handshake) error {
	before := tenant.DeepCopy()
	tenant.Spec.PublicKey = publicPEM(h.publicDER)
	tenant.Spec.Signature = h.signature
	if !p.requested(tenant.Spec.CSR, h.publicDER) {
		csr, err := authentication.GenerateCSRForControlPlane(h.key, liqov1beta1.ClusterID(p.self.id))
		if err != nil {
			return fmt.Errorf("make certificate request: %w", err)
		}
		tenant.Spec.CSR = csr
	}
	if _, marked := tenant.Labels[backend.LabelRefused]; marked {
		delete(tenant.Labels, backend.LabelRefused)
		if err := p.keepHandshake(ctx, ""); err != nil {
			return err
		}
	}
	return p.remote.do(ctx, "patch our Tenant", func(provider client.Client) error {
		return patchIfChanged(ctx, provider, before, tenant)
	})
}

// requested reports whether a certificate request was made for our key. It checks the organization first, because
// Liqo's check panics on a request without organization (Liqo pkg/liqo-controller-manager/authentication/csr.go), and
// the provider's administrators may write any content there.
func (p *peering) requested(csr, publicDER []byte) bool {
	block, _ := pem.Decode(csr)
	if block == nil {
		return false
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && len(request.Subject.Organization) > 0 &&
		authentication.CheckCSRForControlPlane(csr, publicDER, liqov1beta1.ClusterID(p.self.id)) == nil
}

// publicPEM returns the PEM encoding that Liqo has accepted since 1.0.2.
func publicPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// certifies reports whether the parameters were issued for our key. A Tenant's status still contains the parameters
// for an earlier key until Liqo has signed again. A provider on AWS sends no certificate.
func certifies(params *authv1beta1.AuthParams, publicDER []byte) bool {
	if params == nil {
		return false
	}
	if params.AwsConfig != nil {
		return true
	}
	certificate, err := certificateOf(params)
	if err != nil {
		return false
	}
	der, err := x509.MarshalPKIXPublicKey(certificate.PublicKey)
	return err == nil && bytes.Equal(der, publicDER)
}

func certificateOf(params *authv1beta1.AuthParams) (*x509.Certificate, error) {
	block, _ := pem.Decode(params.SignedCRT)
	if block == nil {
		return nil, fmt.Errorf("read certificate: not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
