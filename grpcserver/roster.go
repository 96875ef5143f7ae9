package grpcserver

import (
	"errors"
	"fmt"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// roster holds the groups that are served at one moment. It is never changed once stored.
type roster struct {
	list   []*group // in the order of the config, then the groups that left it
	byID   map[string]*group
	limits Limits
}

// terms holds a group's spec in force and the values derived from it. It is never changed once stored.
type terms struct {
	spec     fleet.GroupSpec
	hash     string
	template *protos.NodeGroupTemplateNodeInfoResponse
	// retired reports that the group is no longer configured. It is served until it is empty, and may only shrink.
	retired bool
	// next holds the terms with which the group starts again when it is retired and empty; nil when it ends then.
	next *terms
	// kept holds the reason for which the configured shape, labels or taints are not in force; "" when they are.
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

// termsOf returns the terms of all configured groups. The list may be empty only if groups are derived from a market.
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
