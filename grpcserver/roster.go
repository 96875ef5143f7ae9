package grpcserver

import (
	"errors"
	"fmt"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// roster holds the groups that the server serves at one moment. A stored roster never changes.
type roster struct {
	list   []*group // configured groups in the order of the config, then groups that are no longer in the config
	byID   map[string]*group
	limits Limits
}

// terms holds the spec with which a group is served, and values that are computed from the spec. Stored terms never
// change.
type terms struct {
	spec     fleet.GroupSpec
	hash     string
	template *protos.NodeGroupTemplateNodeInfoResponse
	// retired reports that the group is no longer configured. Such a group is served until it is empty, and may only
	// shrink.
	retired bool
	// next holds the terms with which a retired group starts again when it is empty. It is nil if the empty group
	// ends.
	next *terms
	// kept explains why the configured shape, labels or taints are not in force; "" when they are.
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
	spec.Budgets = spec.Budgets.WithDefaults() // the group does the same before it hashes its spec
	template, err := templateResponse(spec)
	if err != nil {
		return nil, fmt.Errorf("node group %q: %w", spec.ID, err)
	}
	return &terms{spec: spec, hash: spec.Hash(), template: template}, nil
}

// termsOf returns the terms of all configured groups. An empty list is an error, unless the server has a market from
// which groups may be derived later.
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
