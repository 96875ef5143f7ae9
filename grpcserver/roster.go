package grpcserver

import (
	"errors"
	"fmt"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// roster is what is served at one moment. It is never changed once stored.
type roster struct {
	list   []*group // in the order of the config, then those that are no longer in it
	byID   map[string]*group
	limits Limits
}

// terms are a group's spec in force and what follows from it. They are never changed once stored.
type terms struct {
	spec     fleet.GroupSpec
	hash     string
	template *protos.NodeGroupTemplateNodeInfoResponse
	// retired: no longer configured; served until it is empty, and may only shrink.
	retired bool
	// next is what the group begins anew with once it is retired and empty; nil when it ends then.
	next *terms
	// kept says why the configured shape, labels or taints are not in force; "" when they are.
	kept string
}

func newRoster(list []*group, limits Limits) *roster {
	r := &roster{list: list, byID: make(map[string]*group, len(list)), limits: limits}
	for _, g := range list {
		r.byID[g.id] = g
	}
	return r
}

func newTerms(spec fleet.GroupSpec) (*terms, error) {
	spec.Budgets = spec.Budgets.WithDefaults() // as the group does, whose hash is compared with ours
	template, err := templateResponse(spec)
	if err != nil {
		return nil, fmt.Errorf("node group %q: %w", spec.ID, err)
	}
	return &terms{spec: spec, hash: spec.Hash(), template: template}, nil
}

// termsOf makes the terms of all configured groups. There may be none only where groups are derived from a market.
func (s *Server) termsOf(specs []fleet.GroupSpec) ([]*terms, error) {
	if len(specs) == 0 && s.market == nil {
		return nil, errors.New("no node group is configured")
	}
	seen := map[string]bool{}
	var all []*terms
	for _, spec := range specs {
		if seen[spec.ID] {
			return nil, fmt.Errorf("node group %q is configured twice", spec.ID)
		}
		seen[spec.ID] = true
		t, err := newTerms(spec)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
