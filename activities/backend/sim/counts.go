package sim

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Counts contains the numbers of objects owned by us. At rest, while no verb runs, Slices, RemoteSlices,
// VirtualNodes, Nodes and Stamped are equal (I9). Peerings and Tenants are equal, too.
type Counts struct {
	Peerings     int `json:"peerings"`
	Tenants      int `json:"tenants"`
	Slices       int `json:"slices"`
	RemoteSlices int `json:"remoteSlices"`
	VirtualNodes int `json:"virtualNodes"`
	Nodes        int `json:"nodes"`
	Ready        int `json:"ready"`
	Stamped      int `json:"stamped"`
	Pods         int `json:"pods"` // on our nodes
	// Refusals is the number of records of refusing providers, which are not included in Tenants.
	Refusals int `json:"refusals,omitempty"`
}

// Counts returns the numbers of our objects in the world, of every hub.
func (s *State) Counts() Counts {
	var c Counts
	add := func(n *int, labels map[string]string) bool {
		ours := labels[backend.LabelManagedBy] == backend.ManagedBy
		if ours {
			*n++
		}
		return ours
	}
	for _, p := range s.Consumer.Peerings {
		add(&c.Peerings, p.Labels)
	}
	for _, slice := range s.Consumer.Slices {
		add(&c.Slices, slice.Labels)
	}
	for _, virtual := range s.Consumer.Virtuals {
		add(&c.VirtualNodes, virtual.Labels)
	}
	for name, node := range s.Consumer.Nodes {
		if !add(&c.Nodes, node.Annotations) {
			continue
		}
		if isReady(node) {
			c.Ready++
		}
		if node.Spec.ProviderID != "" {
			c.Stamped++
		}
		c.Pods += len(s.Consumer.Pods[name])
	}
	for _, slice := range s.RemoteSlices {
		add(&c.RemoteSlices, slice.Labels)
	}
	s.countTenants(&c, add)
	return c
}

func (s *State) countTenants(c *Counts, add func(*int, map[string]string) bool) {
	for _, p := range s.Providers {
		switch {
		case p.Tenant == nil:
		case p.Tenant.Labels[backend.LabelRefused] != "":
			add(&c.Refusals, p.Tenant.Labels)
		default:
			add(&c.Tenants, p.Tenant.Labels)
		}
	}
	for _, recorded := range s.Consumer.Refused {
		add(&c.Refusals, recorded.Labels)
	}
}
