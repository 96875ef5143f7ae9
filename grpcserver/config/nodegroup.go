package config

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// NodeGroup is an entry of the file. It stands for one group of the server, or for several: see Sizes and Per.
type NodeGroup struct {
	// ID names the group to CA and in instance names.
	ID string `json:"id" validate:"required,groupid"`
	Defaults
	// Sizes, in place of Shape, make a group for each of several shapes.
	Sizes []Size `json:"sizes,omitempty" validate:"omitempty,min=1,max=20,dive"`
	// Provider, if set, is the only provider of the group, by its id.
	Provider string `json:"provider,omitempty"`
	// MinPerGroup is the min of each group that Sizes or Per make.
	MinPerGroup int `json:"minPerGroup,omitempty" validate:"gte=0,ltefield=Max"`
	// PriceFactor is how many times an offer's price per node a node of the group costs; 0 means once.
	PriceFactor float64 `json:"priceFactor,omitempty" validate:"gte=0"`
}

// Defaults are the fields of a node group that the section defaults may set for all of them. Its maps and structs are
// merged key by key, its other fields are replaced as a whole (inherit.go).
type Defaults struct {
	Min   int                 `json:"min" validate:"gte=0,ltefield=Max"`
	Max   int                 `json:"max" validate:"gte=1,lte=1000"`
	Shape corev1.ResourceList `json:"shape,omitempty"`
	// Nodes are virtual (Liqo's, the default) or machine (of a worker with --backend microvm); all of the hub's are alike.
	Nodes      fleet.NodeKind        `json:"nodes,omitempty" validate:"omitempty,oneof=virtual machine"`
	Labels     map[string]string     `json:"labels,omitempty"`
	Taints     []corev1.Taint        `json:"taints,omitempty"`
	GroupTaint corev1.TaintEffect    `json:"groupTaint,omitempty"`
	Selector   *metav1.LabelSelector `json:"selector,omitempty"`
	// Per makes groups of the offers that the selector matches: one for each provider, or for each value of an offer's
	// label (label:<key>). The default, any, is one group over all of them.
	Per Per `json:"per,omitempty" validate:"omitempty,per"`
	// Currency is the same for all groups: prices of groups are compared.
	Currency  string           `json:"currency,omitempty" validate:"omitempty,iso4217"`
	Selection *fleet.Selection `json:"selection,omitempty"`
	Standby   int              `json:"standby,omitempty" validate:"gte=0,lte=5"`
	Budgets   fleet.Budgets    `json:"budgets,omitempty"`
	Spending  *Spending        `json:"spending,omitempty"`
	// Volumes decides about the volumes on a provider whose last node is idle.
	Volumes fleet.VolumePolicy `json:"volumes,omitempty" validate:"omitempty,oneof=keep delete"`
}

// Size is one of the shapes that an entry stands for.
type Size struct {
	// Name becomes part of the group's id: a DNS-1123 label.
	Name  string              `json:"name" validate:"required,sizename"`
	Shape corev1.ResourceList `json:"shape,omitempty" validate:"required"`
	// PriceFactor is as a group's; 0 means in proportion to the shapes of the first size and this one.
	PriceFactor float64 `json:"priceFactor,omitempty" validate:"gte=0"`
}

// Spending bounds what the group's nodes cost: each of them, and all together.
type Spending struct {
	PerNode *float64 `json:"perNode,omitempty" validate:"omitempty,gt=0,lte=100000000"`
	money.Spending
}

// spec is the entry as the group and its instances need it, with the shape and the min that it has itself.
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
