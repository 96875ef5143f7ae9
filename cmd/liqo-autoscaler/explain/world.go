package explain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// World is what is known of a pod's chances. Groups alone are required besides the pod.
type World struct {
	Pod *corev1.Pod
	// Planned is set for a pod of a manifest.
	Planned   *Planned
	Namespace *corev1.Namespace
	Groups    []fleet.Snapshot
	// Ended are the costs of groups that have ended this month; limits of spending count them.
	Ended []money.Spent
	// Claims are the pod's claims whose volumes are bound to places.
	Claims []Claim
	// Nodes are the Nodes of all groups; nil when they could not be read.
	Nodes []corev1.Node
	// Market is what the providers offer now; nil when that could not be read.
	Market *market.Market
	// Status is the text of Cluster Autoscaler's status ConfigMap, Events are those of the pod.
	Status string
	Events []corev1.Event
	// Waits says what an instance waits for.
	Waits func(group string, i fleet.InstanceView) string
	// Notes are what could not be read.
	Notes []string
	Now   time.Time
}

// Claim is a claim of the pod, by name, with its volume.
type Claim struct {
	Name   string
	Volume *corev1.PersistentVolume
}

// Reason is why a pod has no node, or what a group does about it, in one word.
type Reason string

// The reasons of a pod without a node; those from OnItsWay on are of node groups, too, best first. The reasons of a pod
// that has a node are the verdicts of package boundpod.
const (
	Scheduled       Reason = "Scheduled"              // it has a node, and package boundpod finds nothing wrong there
	Finished        Reason = "Finished"               // it has ended
	Gated           Reason = "Gated"                  // a scheduling gate holds it
	NeverRequested  Reason = "NeverRequested"         // Cluster Autoscaler requests no node for pods of its kind
	NotSeen         Reason = "NotSeen"                // the scheduler has not found it unschedulable yet
	NotOffloaded    Reason = "NotOffloaded"           // Liqo offloads nothing of its namespace
	NoGroups        Reason = "NoGroups"               // no node group runs
	OnItsWay        Reason = "OnItsWay"               // a node that fits is being made
	NotRequestedYet Reason = "NotRequestedYet"        // a group could grow, and Cluster Autoscaler has not asked for that
	BackingOff      Reason = "BackingOff"             // Cluster Autoscaler leaves the group alone after a failure
	NodesDiffer     Reason = "NodesDiffer"            // a Node by which Cluster Autoscaler judges the group is not alike
	NoOffer         Reason = "NoOffer"                // no provider has room for a node of the group now
	AtMax           Reason = fleet.BlockAtMax         // max or the limits of all groups
	SpendingLimit   Reason = fleet.BlockSpendingLimit // a node would cost more than the group may spend
	Paused          Reason = fleet.BlockPaused        // an operator paused the group
	NoGroupFits     Reason = "NoGroupFits"            // the pod does not fit on a node of the group
	NotConfigured   Reason = "NotConfigured"          // the group has no spec yet
)

// order are the reasons of groups, best first.
var order = []Reason{OnItsWay, NotRequestedYet, BackingOff, NoOffer, NodesDiffer, SpendingLimit, AtMax, Paused,
	NoGroupFits, NotConfigured}

// Planned is a pod that a manifest describes. It need not exist.
type Planned struct {
	Pod *corev1.Pod
	// Object names the object that the pod is from, as in "Deployment shop/web".
	Object string
	Way    Way
	// Together is how many such pods Cluster Autoscaler provisions whole or not at all; 0 when it considers each alone.
	Together int
	// Never is why Cluster Autoscaler requests no node for such pods; empty when it does.
	Never string
}

// Way is where Cluster Autoscaler has the pod from, which decides whether the pod passes Liqo's webhook.
type Way string

// The ways.
const (
	Created  Way = "created"  // from the API server, which calls the webhook
	InMemory Way = "inMemory" // Cluster Autoscaler makes it in its memory
	DryRun   Way = "dryRun"   // as InMemory; from 1.36 on the pod passes the webhook in a dry run
)
