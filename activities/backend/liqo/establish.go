package liqo

import (
	"context"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Establish peers with the provider, or adopts the peering that exists.
func (b *Backend) Establish(ctx context.Context, provider fleet.Provider, progress backend.Progress) error {
	p := b.peering(provider)
	w := b.making(ctx, progress)
	var foreign bool
	var warning string
	err := w.until(ctx, backend.StageAPIServer, func(ctx context.Context) (bool, string, error) {
		if message, err := p.prepare(ctx); err != nil || message != "" {
			return false, message, err
		}
		var err error
		foreign, warning, err = p.acceptable(ctx)
		return err == nil, "", err
	})
	if warning != "" {
		progress.Report(backend.StageAPIServer, warning)
	}
	// The network is made first. If a peering has nodes before it has a network, the nodes are not Ready until the
	// network is connected.
	if err == nil {
		err = p.connect(ctx, w, foreign)
	}
	if err == nil {
		if foreign {
			err = p.useAsItIs(ctx, w)
		} else {
			err = p.make(ctx, w)
		}
	}
	if err == nil {
		err = w.until(ctx, backend.StageReachable, p.reachable)
	}
	if err != nil {
		return fmt.Errorf("establish peering with %s: %w", provider.ID, err)
	}
	return nil
}

// prepare reads this cluster's identity and grants our account the permissions that it needs here. The result message
// is the reason why the peering cannot begin yet, or "".
func (p *peering) prepare(ctx context.Context) (message string, err error) {
	if err := p.locate(ctx); err != nil {
		return "", err
	}
	if p.self.id == p.provider.ID {
		return "", errorf(backend.ErrInvalid, "cluster %s cannot be its own provider", p.provider.ID)
	}
	if p.nsTerminating {
		return fmt.Sprintf("namespace %s of an earlier peering is being removed", p.localNS), nil
	}
	return "", p.admit(ctx, p.localNS)
}

// acceptable checks whether a peering is allowed. The result foreign is true if another installation or a user has
// made the peering.
func (p *peering) acceptable(ctx context.Context) (foreign bool, warning string, err error) {
	if err := p.locateRemote(ctx); err != nil {
		return false, "", err
	}
	refusing, err := p.refusal(ctx)
	if err != nil {
		return false, "", err
	}
	if refusing != nil {
		return false, "", refuse(*refusing)
	}
	if foreign, err = p.hasOtherOwner(ctx); err == nil && !foreign {
		warning, err = p.compatible(ctx)
	}
	return foreign, warning, err
}

// make makes the missing parts of the peering.
func (p *peering) make(ctx context.Context, w *waiter) error {
	var h handshake
	var tenant *authv1beta1.Tenant
	return backend.Through(ctx, w.until, []backend.Step{
		{Stage: backend.StageNonce, Poll: func(ctx context.Context) (done bool, message string, err error) {
			if err := p.removeExpiredRefusal(ctx); err != nil {
				return false, "", err
			}
			// Our own namespace is made first: after a crash at any point, the consumer still has a record of the
			// provider.
			if message, err = p.ensureOwnNamespace(ctx); err != nil || message != "" {
				return false, message, err
			}
			if h, err = p.readKeys(ctx); err != nil {
				return false, "", err
			}
			h.nonce, message, err = p.ensureNonce(ctx)
			return err == nil && len(h.nonce) > 0, message, err
		}},
		{Stage: backend.StageSignedNonce, Poll: func(ctx context.Context) (done bool, message string, err error) {
			h.signature, message, err = p.ensureSignedNonce(ctx, h)
			return err == nil && h.signature != nil, message, err
		}},
		{Stage: backend.StageTenant, Poll: func(ctx context.Context) (done bool, message string, err error) {
			tenant, message, err = p.ensureTenant(ctx, h)
			return err == nil && tenant != nil, message, err
		}},
		{Stage: backend.StageIdentity, Poll: func(ctx context.Context) (bool, string, error) {
			return p.ensureIdentity(ctx, tenant, h)
		}},
	})
}

// useAsItIs adopts a peering that is not ours, without writing anything.
func (p *peering) useAsItIs(ctx context.Context, w *waiter) error {
	return backend.Through(ctx, w.until, []backend.Step{
		{Stage: backend.StageTenant, Poll: func(ctx context.Context) (bool, string, error) {
			tenant, err := p.tenant(ctx)
			if err != nil {
				return apierrors.IsNotFound(err), "", client.IgnoreNotFound(err)
			}
			err = checkTenant(tenant)
			return err == nil, "", err
		}},
		{Stage: backend.StageIdentity, Poll: p.foreignIdentity},
	})
}
