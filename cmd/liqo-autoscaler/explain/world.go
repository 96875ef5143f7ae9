package explain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// World is the input of an explanation. Only the pod and Groups are required.
type World struct {
	Pod *corev1.Pod
	// Planned is set for a pod of a manifest.
	Planned   *Planned
	Namespace *corev1.Namespace
	Groups    []fleet.Snapshot
	// Ended contains the costs of groups that have ended this month; spending limits count them.
	Ended []money.Spent
	// Claims are the pod's PersistentVolumeClaims whose volumes are bound to a location.
	Claims []Claim
	// Nodes are the Nodes of all groups; nil when they could not be read.
	Nodes []corev1.Node
	// Market contains the present offers of the providers; nil when it could not be read.
	Market *market.Market
	// Status is the text of Cluster Autoscaler's status ConfigMap. Events are the pod's events.
	Status string
	Events []corev1.Event
	// Waits returns the event for which an instance of a group waits.
	Waits func(group string, i fleet.InstanceView) string
	// Notes name the inputs that could not be read.
	Notes []string
	Now   time.Time
}

// Claim is a PersistentVolumeClaim of the pod with its volume.
type Claim struct {
	Name   string
	Volume *corev1.PersistentVolume
}

// Reason states, in one word, why a pod has no node, or why a group provides no node for the pod.
type Reason string

// These are the reasons for a pod without a node. The reasons from OnItsWay on also apply to node groups. A pod that
// has a node, but does not run, has a verdict of package boundpod as its reason.
const (
	Scheduled       Reason = "Scheduled"              // the pod has a node, and package boundpod finds no fault
	Finished        Reason = "Finished"               // the pod has ended
	Gated           Reason = "Gated"                  // a scheduling gate keeps the pod from being scheduled
	NeverRequested  Reason = "NeverRequested"         // Cluster Autoscaler requests no node for such pods
	NotSeen         Reason = "NotSeen"                // the scheduler has not found the pod unschedulable yet
	NotOffloaded    Reason = "NotOffloaded"           // Liqo does not offload the pod's namespace
	NoGroups        Reason = "NoGroups"               // no node group runs
	OnItsWay        Reason = "OnItsWay"               // a node that fits is being created
	NotRequestedYet Reason = "NotRequestedYet"        // a group could grow, but CA has not requested a node yet
	BackingOff      Reason = "BackingOff"             // Cluster Autoscaler backs off from the group after a failure
	NodesDiffer     Reason = "NodesDiffer"            // CA takes the group's shape from a Node that differs
	NoOffer         Reason = "NoOffer"                // no offer has capacity for a node of the group now
	AtMax           Reason = fleet.BlockAtMax         // max, or the limits for all groups together, are reached
	SpendingLimit   Reason = fleet.BlockSpendingLimit // a node would cost more than the group may spend
	Paused          Reason = fleet.BlockPaused        // an operator has paused the group
	Retired         Reason = fleet.BlockRetired       // the group is not configured any more
	BuildFails      Reason = fleet.BlockBuildFails    // the workers cannot continue the group's workflows
	NoGroupFits     Reason = "NoGroupFits"            // the pod does not fit on a node of the group
	NotConfigured   Reason = "NotConfigured"          // the group has no spec yet
)

// order contains the reasons of groups, ordered from the best to the worst.
var order = []Reason{OnItsWay, NotRequestedYet, BackingOff, NoOffer, NodesDiffer, SpendingLimit, AtMax, Paused,
	BuildFails, Retired, NoGroupFits, NotConfigured}

// Planned is a pod that a manifest describes. The pod need not exist.
type Planned struct {
	Pod *corev1.Pod
	// Object names the object that contains the pod, as in "Deployment shop/web".
	Object string
	Way    Way
	// Together is the number of pods that Cluster Autoscaler provisions all together or not at all; 0 if it considers
	// each pod alone.
	Together int
	// Never is the reason for which Cluster Autoscaler requests no node for such pods, or "" if it may request nodes.
	Never string
}

// Way is the way in which Cluster Autoscaler obtains the pod. It decides whether Liqo's webhook has changed the pod.
type Way string

// These are the possible ways.
const (
	Created  Way = "created"  // from the API server, which calls the webhook
	InMemory Way = "inMemory" // Cluster Autoscaler creates the pod in its memory
	DryRun   Way = "dryRun"   // like InMemory, but from 1.36 on the pod passes the webhook in a dry run
)
