package liqo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/liqotech/liqo/pkg/consts"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
)

// annotationPin is an annotation of the peering's Identity. Its value is a fingerprint of the certificate authorities
// of the API server over which our peering was made. A provider reports its own id, so a cluster could claim the id
// of another one. Therefore this package refuses a cluster that has a known id but other authorities. It reads and
// removes nothing on such a cluster until an operator confirms that the cluster is the same provider (Repin).
const annotationPin = "liqo-autoscaler.io/pinned-authorities"

// noAuthorities is the pin of a kubeconfig without its own authorities. The authorities of the worker's system then
// apply.
const noAuthorities = "system"

// pinned is a provider's client with the authorities of its configuration and the validity of its credentials.
type pinned struct {
	client.Client
	authorities string
	life        account.Life
}

// authoritiesOf returns a fingerprint of the configuration's authorities. The fingerprint does not depend on the
// order and the layout of the authorities.
func authoritiesOf(config *rest.Config) string {
	var all []string
	for rest := config.CAData; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		sum := sha256.Sum256(block.Bytes)
		all = append(all, hex.EncodeToString(sum[:]))
	}
	if len(all) == 0 {
		return noAuthorities
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(all), " ")))
	return hex.EncodeToString(sum[:16])
}

// authoritiesOfClient returns the fingerprint of an opened client, or "" for a client without a fingerprint.
func authoritiesOfClient(cluster client.Client) string {
	if p, ok := cluster.(pinned); ok {
		return p.authorities
	}
	return ""
}

// pin returns the pin on our Identity, or "" when we have no Identity.
func (p *peering) pin(ctx context.Context) (string, error) {
	identity, err := p.controlPlaneIdentity(ctx)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if !p.mine(identity) {
		return "", nil
	}
	return identity.Annotations[annotationPin], nil
}

// repinned reports whether an operator has confirmed that the provider has new authorities.
func repinned(identity client.Object) bool {
	pin, known := identity.GetAnnotations()[annotationPin]
	return known && pin == ""
}

// sameProvider returns ErrInvalid when a client's authorities differ from the pinned authorities.
func (p *peering) sameProvider(ctx context.Context, cluster client.Client) error {
	pin, err := p.pin(ctx)
	if err != nil {
		return ownSide{fmt.Errorf("read what is pinned of provider %s: %w", p.provider.ID, err)}
	}
	if have := authoritiesOfClient(cluster); pin != "" && have != "" && pin != have {
		return errorf(backend.ErrInvalid,
			"a cluster that calls itself %s has another certificate authority than the one that "+
				"we are peered with: if the provider was rebuilt or has a new authority, run liqo-autoscaler offers repin %s; "+
				"else its credentials lead to somebody else", p.provider.ID, p.provider.ID)
	}
	return nil
}

// Repin removes the pinned authorities of a provider. The next Establish pins the authorities that it finds. That
// Establish also makes the Tenant again if the provider was rebuilt and has none. Repin reports whether any
// authorities were pinned.
func (b *Backend) Repin(ctx context.Context, provider string) (bool, error) {
	self, err := b.consumer(ctx)
	if err != nil {
		return false, fmt.Errorf("repin provider %s: %w", provider, err)
	}
	var found authv1beta1.IdentityList
	which := with(b.ours(self.id), map[string]string{consts.RemoteClusterID: provider})
	if err := b.local.List(ctx, &found, client.MatchingLabels(which)); err != nil {
		return false, fmt.Errorf("repin provider %s: %w", provider, err)
	}
	forgot := false
	for i := range found.Items {
		if found.Items[i].Annotations[annotationPin] == "" {
			continue
		}
		forgot = true
		err := nodes.MergePatch(ctx, b.local, &found.Items[i], map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{annotationPin: ""}},
		})
		if err != nil {
			return false, fmt.Errorf("repin provider %s: %w", provider, err)
		}
	}
	return forgot, nil
}
