package pair

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/providers"
	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
)

// providerSide is the provider's part of a setup: the objects in the provider's cluster for one consumer.
type providerSide struct {
	*cluster
	id       identity
	consumer string
	server   string
	wants    []wanted
	policies provider.Policies
}

// providerSide reads and checks the provider's cluster. It changes nothing.
func (o *options) providerSide(ctx context.Context, c *cluster, id identity, consumer string) (*providerSide, error) {
	server, err := serverOf(o.server, c.admin.Host)
	if err != nil {
		return nil, err
	}
	g := &providerSide{cluster: c, id: id, consumer: consumer, server: server}
	o.access.LiqoNamespace = id.liqoNamespace
	manifest, policies, err := o.access.Manifest(consumer)
	if err != nil {
		return nil, err
	}
	g.policies = policies
	has, err := version.ParseGeneric(id.Kubernetes)
	if policies != provider.NoPolicies && err == nil && has.LessThan(withPolicies) {
		return nil, fmt.Errorf("%s: Kubernetes %s has no ValidatingAdmissionPolicies. Without them the consumer can make "+
			"itself an administrator there: upgrade to %s, or accept this with --no-policy", c, id.Kubernetes, withPolicies)
	}
	if g.wants, err = parse(manifest, c.objects); err != nil {
		return nil, err
	}
	if err := compare(ctx, g.wants, consumer); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	return g, nil
}

// withPolicies is the first version of Kubernetes with ValidatingAdmissionPolicies.
var withPolicies = version.MustParseGeneric("1.30")

// offer returns the offer that the flags describe. If measured is true, it measures the amounts. Otherwise it sets no
// amounts, so that the amounts in the consumer's Secret stay as they are.
func (o *options) offer(ctx context.Context, g *providerSide, measured bool) (made offer, err error) {
	made.Provider = g.id.ID
	if measured {
		if made, err = g.measure(ctx, g.id, g.consumer, o.bound); err != nil {
			return made, err
		}
	}
	made.Price, made.Currency = o.price, o.currency
	made.Network, err = network(o.network)
	return made, err
}

// document requests a token for the consumer's account, and returns the document for the consumer.
func (g *providerSide) document(ctx context.Context, o offer, lasts time.Duration) (d document, end time.Time,
	err error) {
	d = document{Consumer: g.consumer, Provider: g.id, Offer: o}
	authority, err := providers.Authority(ctx, g.kube, g.admin)
	if err != nil {
		return d, end, fmt.Errorf("%s: %w", g, err)
	}
	token, end, err := providers.Token(ctx, g.kube, g.consumer, lasts)
	if err != nil {
		return d, end, fmt.Errorf("%s: %w", g, err)
	}
	d.Access = access{Server: g.server, Authority: string(authority), Token: token}
	return d, end, nil
}
