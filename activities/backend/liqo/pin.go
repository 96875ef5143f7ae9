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

// A provider's id is what it says it is, so a cluster could take another one's place. The Identity of our peering
// therefore pins the certificate authorities of the API server that it was made over: whoever comes with that id and
// other authorities is refused, and nothing is read or removed over them, until an operator has said that it is the
// same provider (Repin).
const annotationPin = "liqo-autoscaler.io/pinned-authorities"

// noAuthorities is the pin of a kubeconfig without authorities of its own: those of the worker's system count.
const noAuthorities = "system"

// pinned is a provider's client with the authorities by which it knows the provider, and the end of its credentials.
type pinned struct {
	client.Client
	authorities string
	life        account.Life
}

// authoritiesOf is a fingerprint of the authorities of a configuration, whatever their order and layout.
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

// authoritiesOfClient is the fingerprint of an opened client; "" of one that has none to tell.
func authoritiesOfClient(cluster client.Client) string {
	if p, ok := cluster.(pinned); ok {
		return p.authorities
	}
	return ""
}

// pin is what our Identity pins; "" while there is none.
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

// repinned reports whether an operator has said that the provider is another cluster than before.
func repinned(identity client.Object) bool {
	pin, known := identity.GetAnnotations()[annotationPin]
	return known && pin == ""
}

// sameProvider is ErrInvalid when a client does not know the provider by the authorities that are pinned.
func (p *peering) sameProvider(ctx context.Context, cluster client.Client) error {
	pin, err := p.pin(ctx)
	if err != nil {
		return ownSide{fmt.Errorf("read what is pinned of provider %s: %w", p.provider.ID, err)}
	}
	if have := authoritiesOfClient(cluster); pin != "" && have != "" && pin != have {
		return say(backend.ErrInvalid, "a cluster that calls itself %s has another certificate authority than the one that "+
			"we are peered with: if the provider was rebuilt or has a new authority, run liqo-autoscaler offers repin %s; "+
			"else its credentials lead to somebody else", p.provider.ID, p.provider.ID)
	}
	return nil
}

// Repin forgets by what authorities a provider is known: the next Establish takes those that it finds, and makes the
// Tenant anew that a rebuilt provider does not have. It reports whether there was anything to forget.
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
