package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// groupStatus is the content of a LiqoNodeGroup. Amounts of money are texts with a decimal number.
type groupStatus struct {
	Min         int                `json:"min"`
	Max         int                `json:"max"`
	TargetSize  int                `json:"targetSize"`
	Ready       int                `json:"ready"`
	NotReady    int                `json:"notReady"`
	Pending     int                `json:"pending"`
	Failed      int                `json:"failed"`
	Deleting    int                `json:"deleting"`
	HourlyCost  string             `json:"hourlyCost"`
	MonthlyCost string             `json:"monthlyCost"`
	Currency    string             `json:"currency,omitempty"`
	Why         string             `json:"why,omitempty"`
	Conditions  []metav1.Condition `json:"conditions"`
}

// offerStatus is the content of a LiqoOffer.
type offerStatus struct {
	Offer      string             `json:"offer"`
	Provider   string             `json:"provider"`
	Nodes      int                `json:"nodes"`
	MaxNodes   int                `json:"maxNodes,omitempty"`
	Lendable   amounts            `json:"lendable"`
	Free       amounts            `json:"free"`
	Price      string             `json:"price,omitempty"`
	Currency   string             `json:"currency,omitempty"`
	Expires    *metav1.Time       `json:"expires,omitempty"`
	Peered     bool               `json:"peered"`
	Condition  string             `json:"condition"`
	Conditions []metav1.Condition `json:"conditions"`
}

type amounts struct {
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
}

// These constants are the types of conditions.
const (
	conditionReady     = "Ready"         // of a group: each instance is ready
	conditionCanGrow   = "CanGrow"       // of a group: a scale-out may start
	conditionInForce   = "ConfigInForce" // of a group: the nodes have the configured shape, labels and taints
	conditionDegraded  = "Degraded"      // of a group: the workers' build fails its workflow tasks
	conditionAvailable = "Available"     // of an offer: it serves new nodes
	conditionCordoned  = "Cordoned"      // of an offer: an operator permits no new nodes
	conditionPeered    = "Peered"        // of an offer: a peering with the provider exists
)

// maxWords bounds the length of a message, in characters.
const maxWords = 500

// costsEvery is the interval at which the monthly costs in the objects change. Costs grow continuously, so without this
// interval every round would write every group with a cost.
const costsEvery = time.Hour

// statusOfGroup returns the content for the group g. Several groups may share one account with a spending limit, so
// statusOfGroup also needs all groups, and the costs of ended groups.
func statusOfGroup(g fleet.Snapshot, all []fleet.Snapshot, ended []money.Spent, now time.Time) groupStatus {
	hour := now.Truncate(costsEvery)
	cost, _ := g.Cost.Until(hour)
	rate, _ := cost.Rate()
	_, currency := g.Account()
	s := groupStatus{Min: g.Min, Max: g.Max, TargetSize: g.Target, HourlyCost: decimal(rate.Float()),
		MonthlyCost: decimal(cost.ThisMonth().Float()), Currency: currency}
	for _, v := range g.Instances {
		switch {
		case v.State == fleet.StateDeleting:
			s.Deleting++
		case v.Phase == fleet.Failed:
			s.Failed++
		case v.Phase == fleet.Ready && v.NotReady:
			s.NotReady++
		case v.Phase == fleet.Ready:
			s.Ready++
		default:
			s.Pending++
		}
	}
	var balance money.Balance
	if g.Spec != nil && g.Spec.Spending != nil {
		balance = g.Balance(all, ended, hour)
	}
	s.Conditions = []metav1.Condition{s.ready(g), canGrow(g, g.Blocked(balance, 0)), inForce(g), degraded(g)}
	s.Why = why(g, balance)
	return s
}

func (s groupStatus) ready(g fleet.Snapshot) metav1.Condition {
	counts := fmt.Sprintf("%d of %d instances are ready", s.Ready, s.TargetSize)
	switch {
	case g.Recovering:
		return isFalse(conditionReady, "Recovering", "the group lists the existing objects")
	case s.Failed > 0:
		return isFalse(conditionReady, "InstancesFailed", fmt.Sprintf("%s, %d failed", counts, s.Failed))
	case s.NotReady > 0:
		return isFalse(conditionReady, "NodesNotReady", fmt.Sprintf("%s, %d nodes are not ready", counts, s.NotReady))
	case s.Pending > 0 || s.Ready < s.TargetSize:
		return isFalse(conditionReady, "InstancesPending", counts)
	}
	return isTrue(conditionReady, "InstancesReady", counts)
}

func canGrow(g fleet.Snapshot, block fleet.GroupNotice) metav1.Condition {
	switch {
	case g.Notice.Name == fleet.BlockRetired:
		return isFalse(conditionCanGrow, g.Notice.Name, g.Notice.Message)
	case block.Name != "":
		return isFalse(conditionCanGrow, block.Name, block.Message)
	case g.Recovering:
		return isFalse(conditionCanGrow, "Recovering", "the group lists the existing objects")
	case g.Spec == nil:
		return isFalse(conditionCanGrow, "NotConfigured", "the group has not received its configuration")
	}
	return isTrue(conditionCanGrow, "BelowMax", "")
}

func inForce(g fleet.Snapshot) metav1.Condition {
	if g.Notice.Name != "" {
		return isFalse(conditionInForce, g.Notice.Name, g.Notice.Message)
	}
	return isTrue(conditionInForce, "AsConfigured", "")
}

func degraded(g fleet.Snapshot) metav1.Condition {
	if g.Condition != "" {
		return isTrue(conditionDegraded, fleet.BlockBuildFails, g.Condition)
	}
	return isFalse(conditionDegraded, "AsExpected", "")
}

// why returns the names of a group's conditions and the codes of its failed instances, separated by commas.
func why(g fleet.Snapshot, balance money.Balance) string {
	var names []string
	if g.Recovering {
		names = append(names, "Recovering")
	}
	for _, c := range g.Conditions(balance, 0) {
		names = append(names, c.Name)
	}
	for _, v := range g.Instances {
		if v.Phase == fleet.Failed && v.Failure != nil && !slices.Contains(names, string(v.Failure.Code)) {
			names = append(names, string(v.Failure.Code))
		}
	}
	return strings.Join(names, ",")
}

// statusOfOffer returns the content for an offer.
func statusOfOffer(o market.Offer, now time.Time) offerStatus {
	s := offerStatus{Offer: o.Name, Provider: o.Provider, Nodes: o.Nodes, MaxNodes: o.MaxNodes,
		Lendable: amountsOf(o.Lendable), Free: amountsOf(o.Free), Price: priceOf(o), Currency: o.Currency, Peered: o.Peered}
	if o.Expires != nil {
		s.Expires = &metav1.Time{Time: o.Expires.UTC().Truncate(time.Second)}
	}
	available := availableNow(o, now)
	if s.Condition = available.Reason; available.Status == metav1.ConditionTrue {
		s.Condition = conditionAvailable
	}
	s.Conditions = []metav1.Condition{available, isFalse(conditionCordoned, "NotCordoned", ""),
		isFalse(conditionPeered, "NoPeering", "")}
	if o.Cordoned {
		s.Conditions[1] = isTrue(conditionCordoned, "CordonedByOperator", cordonedText(o))
	}
	switch {
	case !o.Removing.IsZero():
		s.Conditions[2] = isFalse(conditionPeered, "Removing", "the last peering is being removed")
	case o.Peered:
		s.Conditions[2] = isTrue(conditionPeered, "PeeringExists", "")
	}
	return s
}

func availableNow(o market.Offer, now time.Time) metav1.Condition {
	switch {
	case o.Cordoned:
		return isFalse(conditionAvailable, "Cordoned", cordonedText(o))
	case o.Closed != "":
		return isFalse(conditionAvailable, "ProviderRefuses", o.Closed)
	case o.Expires != nil && !now.Before(*o.Expires):
		return isFalse(conditionAvailable, "Expired", "the offer has expired")
	case o.MaxNodes > 0 && o.Nodes >= o.MaxNodes:
		return isFalse(conditionAvailable, "AtMaxNodes", fmt.Sprintf("the offer has %d of at most %d nodes", o.Nodes,
			o.MaxNodes))
	}
	return isTrue(conditionAvailable, "Offered", "")
}

func cordonedText(o market.Offer) string {
	return "no new nodes: liqo-autoscaler uncordon provider " + o.Provider
}

// amountsOf returns CPU and memory, the two resources of every node. A resource that the offer lacks is 0.
func amountsOf(list corev1.ResourceList) amounts {
	return amounts{list.Cpu().String(), list.Memory().String()}
}

// priceOf returns the price of one node for an hour. If the offer has no such price, it returns the prices of the
// single resources.
func priceOf(o market.Offer) string {
	if o.Price > 0 {
		return decimal(o.Price)
	}
	var each []string
	for _, name := range slices.Sorted(maps.Keys(o.Prices)) {
		each = append(each, string(name)+"="+decimal(o.Prices[name]))
	}
	return strings.Join(each, ",")
}

func decimal(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }

func isTrue(of, reason, message string) metav1.Condition {
	return metav1.Condition{Type: of, Status: metav1.ConditionTrue, Reason: reason,
		Message: shorten.Words(message, maxWords)}
}

func isFalse(of, reason, message string) metav1.Condition {
	c := isTrue(of, reason, message)
	c.Status = metav1.ConditionFalse
	return c
}
