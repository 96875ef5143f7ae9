package config

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// NodeGroup is an entry of nodeGroups in the file. It defines one node group, or several (see Sizes and Per).
type NodeGroup struct {
	// ID is the name of the group for CA. It is also part of the instance names.
	ID string `json:"id" validate:"required,groupid"`
	Defaults
	// Sizes lists several shapes, and defines one group for each. Shape must then be absent.
	Sizes []Size `json:"sizes,omitempty" validate:"omitempty,min=1,max=20,dive"`
	// Provider, if set, holds the id of the group's only provider.
	Provider string `json:"provider,omitempty"`
	// MinPerGroup is the min of each group that Sizes or Per define.
	MinPerGroup int `json:"minPerGroup,omitempty" validate:"omitempty,gte=0,ltefield=Max"`
	// The price of a node of the group is the offer's price per node times PriceFactor; 0 means 1.
	PriceFactor float64 `json:"priceFactor,omitempty" validate:"gte=0"`
}

// Defaults holds the fields that the section "defaults" may set for all node groups. A group's maps and structs are
// merged with the defaults key by key. Any other field of a group replaces the field of the defaults (inherit.go).
type Defaults struct {
	Min   int                 `json:"min" validate:"omitempty,gte=0,ltefield=Max"` // 0 is below every max
	Max   int                 `json:"max" validate:"gte=1,lte=1000"`
	Shape corev1.ResourceList `json:"shape,omitempty"`
	// Nodes selects virtual nodes (Liqo's, the default) or machines (of a worker with --backend microvm). All groups of a
	// hub have the same kind.
	Nodes      fleet.NodeKind        `json:"nodes,omitempty" validate:"omitempty,oneof=virtual machine"`
	Labels     map[string]string     `json:"labels,omitempty"`
	Taints     []corev1.Taint        `json:"taints,omitempty"`
	GroupTaint corev1.TaintEffect    `json:"groupTaint,omitempty"`
	Selector   *metav1.LabelSelector `json:"selector,omitempty"`
	// Per defines how groups are derived from the offers that the selector matches: one group for each provider
	// (provider), or one for each value of a label of the offers (label:<key>). With the default, any, one group uses
	// all these offers.
	Per Per `json:"per,omitempty" validate:"omitempty,per"`
	// Currency must be the same for all groups, because their prices are compared.
	Currency  string           `json:"currency,omitempty" validate:"omitempty,iso4217"`
	Selection *fleet.Selection `json:"selection,omitempty"`
	Standby   int              `json:"standby,omitempty" validate:"gte=0,lte=5"`
	Budgets   fleet.Budgets    `json:"budgets,omitempty"`
	Spending  *Spending        `json:"spending,omitempty"`
	// Volumes decides whether the volumes on a provider are kept or deleted when the provider's last node is idle.
	Volumes fleet.VolumePolicy `json:"volumes,omitempty" validate:"omitempty,oneof=keep delete"`
}

// Size is one of the shapes for which an entry defines a group.
type Size struct {
	// Name becomes part of the group's id: a DNS-1123 label.
	Name  string              `json:"name" validate:"required,sizename"`
	Shape corev1.ResourceList `json:"shape,omitempty" validate:"required"`
	// PriceFactor multiplies an offer's price per node for a node of this size. If it is 0, the factor is computed
	// from the ratio between this shape and the shape of the first size.
	PriceFactor float64 `json:"priceFactor,omitempty" validate:"gte=0"`
}

// Spending bounds the cost of each of the group's nodes, and of all nodes together.
type Spending struct {
	PerNode *float64 `json:"perNode,omitempty" validate:"omitempty,gt=0,lte=100000000"`
	money.Spending
}

// spec converts the entry to the spec of a group and its instances. The spec has the entry's shape and min.
func (g NodeGroup) spec() fleet.GroupSpec {
	s := fleet.GroupSpec{Min: g.Min, Max: g.Max, Standby: g.Standby, Volumes: g.Volumes, InstanceSpec: fleet.InstanceSpec{
		ID: g.ID, Shape: g.Shape, Nodes: g.Nodes, Labels: g.Labels, Taints: g.Taints, GroupTaint: g.GroupTaint,
		Selector: g.Selector, Provider: g.Provider, PriceFactor: g.PriceFactor, Currency: g.Currency,
		Selection: g.Selection, Budgets: g.Budgets,
	}}
	if g.Spending != nil {
		s.MaxPrice = ptr.Deref(g.Spending.PerNode, 0)
		if together := g.Spending.Spending; together != (money.Spending{}) {
			s.Spending = &together
		}
	}
	return s
}
