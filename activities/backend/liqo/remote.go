package liqo

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

var (
	errNotKubeconfig = errors.New("is not a kubeconfig with a current context")
	errRunsPrograms  = errors.New("is a kubeconfig that runs a program, which is refused for one kept in a cluster")
	errAliases       = fmt.Errorf("is not read: %w", strictyaml.ErrAliases)
	errNamesFiles    = errors.New("is a kubeconfig that names files, which is refused for one kept in a cluster")
)

// remote is the connection of one verb to one provider cluster. It opens its client on first use, and again after
// each request that the provider did not answer (ErrUnreachable). Whenever it opens a client, it checks that the
// client reaches the right cluster.
type remote struct {
	b        *Backend
	provider fleet.Provider
	// same checks that an opened client leads to the provider of our peering.
	same        func(ctx context.Context, cluster client.Client) error
	client      client.Client
	authorities string // the fingerprint of the client's authorities
	namespace   string // the namespace of Liqo on the provider
}

// do runs one action on the provider. The parameter what describes the action: in an error it completes the text
// "cannot ...".
func (r *remote) do(ctx context.Context, what string, action func(provider client.Client) error) error {
	if r.client == nil {
		if err := r.dial(ctx); err != nil {
			return err
		}
	}
	err := accessError(what, action(r.client))
	if errors.Is(err, backend.ErrUnreachable) {
		r.client = nil
	}
	return err
}

func (r *remote) dial(ctx context.Context) error {
	provider, err := r.b.open(ctx, r.provider.Credentials)
	if err != nil {
		return err
	}
	r.b.ends.remember(r.provider.ID, provider, time.Now())
	found, err := r.b.identify(withIdentityBound(ctx), provider)
	if err != nil {
		return accessError("read the provider's cluster id", err)
	}
	if found.id != r.provider.ID {
		return errorf(backend.ErrInvalid,
			"the credentials of provider %s lead to cluster %s: fix the offer or its kubeconfig",
			r.provider.ID, found.id)
	}
	if err := r.same(ctx, provider); err != nil {
		return err
	}
	r.client, r.authorities, r.namespace = provider, authoritiesOfClient(provider), found.namespace
	return nil
}

// accessError classifies an error of a provider. It returns ErrUnreachable if no usable answer came, and ErrDenied if
// the request was refused. It returns any other error unchanged.
func accessError(what string, err error) error {
	var status apierrors.APIStatus
	var known *kindError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case apierrors.IsForbidden(err): // the API server's RBAC, or a webhook of Liqo
		said := shorten.Words(fmt.Sprintf("cannot %s: %v", what, err), maxWords)
		return &kindError{Kind: backend.ErrDenied, Message: said, Forbidden: true}
	case apierrors.IsUnauthorized(err):
		return errorf(backend.ErrUnreachable, "cannot %s: the provider does not accept our credentials", what)
	case errors.As(err, &status) && !isOverloaded(err), meta.IsNoMatchError(err):
		return fmt.Errorf("%s: %w", what, cutStatus(err))
	default:
		return errorf(backend.ErrUnreachable, "cannot %s: %v", what, err)
	}
}

func isOverloaded(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err)
}
