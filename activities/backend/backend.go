// Package backend defines the interface to a system that makes nodes from the capacity of other clusters. The
// interface describes peerings, attempts and nodes, and does not depend on Liqo. backend/liqo and backend/microvm are
// real implementations, and backend/sim is a simulated one. All three backends pass the contract suite in
// backendtest. Some words come from Liqo. In every backend, the slice is the capacity that the provider grants, the
// virtual node is the object that carries the mark (AnnotationStamp), and the Node is the Kubernetes object that
// results from both.
//
// Every method of Backend, also called a verb, makes these promises:
//   - It is idempotent. If it is called again, even by another process after a crash at any point, it adopts the
//     objects that it finds by label, and continues. The removal of an absent object is success.
//   - It blocks until its goal is reached, the context ends, or an error is final. It polls or watches internally;
//     callers limit its time with the context.
//   - If the context ends first, it returns a *StageError that names the first unmet stage. The error wraps the
//     context's error with its cause, and also ErrUnreachable when the provider does not answer.
//   - Every verb except Join may be called in passes of a few seconds, by any process, until it returns nil: it keeps
//     no start time of a wait in memory. A caller that uses passes sets WithStartTime.
//   - It calls Progress at each change of stage, and at least every few seconds while it waits. It does so in the
//     calling goroutine, so that callers can send heartbeats from Progress. Progress may be nil.
//   - It never changes or removes an object that is not owned by us (see the labels below). The owner of an object is
//     this installation (us), another installation, or the user that made the object by hand.
//   - Its errors, stage messages and returned values contain no secrets.
package backend

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These are the labels of every object that we make, and the annotations that recovery needs. On a Node, only
// LabelGroup is a label, and all these keys are annotations. The reason is that CA considers the Nodes of a group
// similar only if their labels are equal.
const (
	LabelManagedBy = "liqo-autoscaler.io/managed-by" // always ManagedBy
	LabelHub       = "liqo-autoscaler.io/hub"
	LabelGroup     = "liqo-autoscaler.io/group"
	LabelInstance  = "liqo-autoscaler.io/instance"
	LabelAttempt   = "liqo-autoscaler.io/attempt"
	// LabelRefused marks the objects that record a provider's refusal. These objects stay when the provider's peering
	// is removed.
	LabelRefused = "liqo-autoscaler.io/refused"

	AnnotationBooking = "liqo-autoscaler.io/booking" // JSON of Booking
	AnnotationStamp   = "liqo-autoscaler.io/stamp"   // the mark; its value is the instance id, see Nodes.Join
	// AnnotationCredentials is set on a peering's objects and on virtual nodes. Its value is the JSON of
	// fleet.Credentials, which refers to the secret credentials and does not contain them.
	AnnotationCredentials = "liqo-autoscaler.io/credentials"

	// AnnotationCordoned marks a Node that Cordon has cordoned.
	AnnotationCordoned = "liqo-autoscaler.io/cordoned"

	// AnnotationHourlyPrice and AnnotationPriceCurrency contain the price per hour of a Node. A Node whose offer had
	// no price has neither annotation. They are not labels, because all Nodes of a group must have equal labels.
	AnnotationHourlyPrice   = "liqo-autoscaler.io/hourly-price"
	AnnotationPriceCurrency = "liqo-autoscaler.io/price-currency"

	ManagedBy = "liqo-autoscaler"
)

// NodeSpec describes the Node that Join makes. The Node has exactly the size Shape. It has Labels and Taints from the
// moment of its creation.
type NodeSpec struct {
	Attempt fleet.Attempt       `json:"attempt"`
	Shape   corev1.ResourceList `json:"shape"`
	// Class is the offer's class: the controller that decides on the slice at the provider. "" means the provider's
	// default.
	Class   string            `json:"class,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Taints  []corev1.Taint    `json:"taints,omitempty"`
	Booking fleet.Booking     `json:"booking"`
}

// Price returns the annotations with the price of the Node; nil when the price is unknown.
func (s NodeSpec) Price() map[string]string {
	if s.Booking.Hourly == 0 {
		return nil
	}
	return map[string]string{AnnotationHourlyPrice: strconv.FormatFloat(s.Booking.Hourly, 'f', -1, 64),
		AnnotationPriceCurrency: s.Booking.Spec.CurrencyOrDefault()}
}

// Kind returns ErrInvalid when the backend does not make the kind of nodes that the spec's group requires. A Node of
// another kind would differ from the template that CA has received.
func (s NodeSpec) Kind(makes fleet.NodeKind) error {
	if requested := cmp.Or(s.Booking.Spec.Nodes, fleet.NodesVirtual); requested != makes {
		return fmt.Errorf("group %s has nodes: %s, and this worker makes nodes: %s: give it a group of these: %w",
			s.Attempt.Group, requested, makes, ErrInvalid)
	}
	return nil
}

// Peerings makes and removes the peering with a provider. All attempts on the provider share this peering.
type Peerings interface {
	// Identify reads the provider's cluster id with its credentials. Errors: ErrUnreachable, ErrInvalid (the
	// credentials are broken, or do not lead to a provider).
	Identify(ctx context.Context, credentials fleet.Credentials) (id string, err error)
	// Establish returns nil once the peering works in the direction consumer -> provider. If a peering without our
	// labels exists, Establish uses it and never changes it. Before Establish makes the peering, it makes the network
	// that provider.Network describes. If another owner's network with the provider exists, Establish uses it when it
	// is connected, and otherwise returns ErrConflict. While the provider refuses this cluster, it returns a
	// *RefusingError and makes nothing. It also reports a refusal when the provider's administrators have removed
	// their part of our peering. Errors: ErrUnreachable, ErrDenied, *StageError. The peering needs pods on the
	// consumer: while one of these pods cannot be scheduled, the *StageError matches ErrNoRoom.
	Establish(ctx context.Context, provider fleet.Provider, progress Progress) error
	// RemovePeering removes the objects that Establish made, and only these. It returns nil when no object owned by
	// us is left on the consumer or the provider, or when the peering is not owned by us. It returns ErrInUse and
	// changes nothing in two cases: a fresh list shows a slice of any owner for that provider (I11), or the peering
	// also serves the direction provider -> consumer. While the provider refuses this cluster, the objects that
	// record the refusal stay, with LabelRefused. In this case RemovePeering returns a *RefusingError once all other
	// objects are removed. While the provider is unreachable, it tries again until the context ends.
	RemovePeering(ctx context.Context, provider fleet.Provider, progress Progress) error
	// Refusal reads whether the provider refuses this cluster now, and returns nil when it does not. It does not
	// wait. Errors: ErrUnreachable, ErrInvalid, ErrDenied (the credentials do not permit this read).
	Refusal(ctx context.Context, provider fleet.Provider) (*fleet.ProviderRefusal, error)
	// Observe reads once how the provider treats this cluster, and changes nothing. Errors: ErrCredentials when the
	// provider does not accept our credentials or grants them too few permissions, ErrInvalid when the credentials
	// are broken or lead to another cluster, ErrUnreachable. If the peering does not exist, it returns the zero
	// Observation once the provider has answered.
	Observe(ctx context.Context, provider fleet.Provider) (Observation, error)
}

// Observation describes how a provider treats this cluster. Every field was read successfully.
type Observation struct {
	Tenant fleet.RefusingKind
	// Absent lists the attempts, by object name, whose slice exists on the consumer but not on the provider.
	Absent []string
	// Network describes the fault of the network in words; "" when it has no fault or does not exist. NetworkHere
	// means that the consumer's own end of the network does not run.
	Network     string
	NetworkHere bool
	// Fault is the fault of the peering on the consumer, with a remedy. Observe reports this fault even while the
	// peering is being made.
	Fault fleet.Fault
	// Heard has one value for each end of the network. The value is the time, by that end's own clock, of its last
	// successful measurement of the connection; it is "" for an end that does not measure. An end that has not
	// measured for longer than Quiet is dead. Quiet is 0 when this time is unknown.
	Heard []string
	Quiet time.Duration
	// Message contains details, if there are any.
	Message string
}

// Nodes makes and removes the node of one attempt on an established peering.
type Nodes interface {
	// Join creates the node of one attempt. It returns once the Node is Ready with exactly the spec's shape, accepts
	// pods, and is stamped. Join first marks the virtual node (AnnotationStamp). It then stamps the Node: it sets the
	// Node's providerID to the instance id. It may do both as soon as the Node is complete, even if Kubernetes has not
	// removed its taint not-ready yet. Join does neither while another Node carries the instance id. It also does
	// neither while another attempt of the same instance has a marked virtual node. If another attempt is marked and
	// stamped and is not lost, that attempt is the instance's node, and Join returns ErrConflict. Join searches for such
	// Nodes and virtual nodes twice: at most a second before it marks, and at most a second before it stamps.
	//
	// Errors: ErrNotPeered (Join returns it immediately and makes nothing), ErrDenied (a *RefusingError when the
	// provider refuses this cluster as a whole), ErrShort (the grant is smaller than the request), ErrFull (the
	// controller that decides for Class has no capacity), ErrInvalid (the group requires another kind of nodes),
	// ErrConflict (also when the name or providerID is taken), ErrUnreachable, *StageError.
	Join(ctx context.Context, spec NodeSpec, progress Progress) (Node, error)
	// Drain removes the mark, cordons the Node and evicts its pods (except DaemonSet and mirror pods), honouring
	// disruption budgets, until no pod is left. With force it first puts TaintToBeDeleted on the Node, and then deletes
	// the pods with grace period 0; it does not wait for the provider. A missing Node is success.
	Drain(ctx context.Context, attempt fleet.Attempt, force bool, progress Progress) error
	// Return removes the mark, the virtual node, its Node and the slice, in this order. It returns once they are gone
	// on the consumer and on the provider. Pods that are still on the node a short time after StartTime are deleted
	// with grace period 0. If the provider is unreachable, Return still removes the virtual node and the Node, and
	// tries to remove the slice until the context ends.
	Return(ctx context.Context, attempt fleet.Attempt, progress Progress) error
}

// Cordons keeps new pods away from the Nodes of a provider that accepts no new pods.
type Cordons interface {
	// Cordon cordons the attempt's Node and records on the Node that it did so. With cordoned=false it removes the
	// cordon, but only if Cordon itself has set it. It does not change a Node that another actor has cordoned, or
	// that CA is deleting. A missing Node is success.
	Cordon(ctx context.Context, attempt fleet.Attempt, cordoned bool) error
}

// Inventory lists the existing objects and peerings.
type Inventory interface {
	// List returns one Found for each attempt that has an object of ours on the consumer, in the order of names. It
	// returns the attempts that the scope selects. List sends no request to a provider. It returns an error if it cannot
	// read the whole list.
	List(ctx context.Context, scope Scope) ([]fleet.Found, error)
	// Peers returns the providers that have a peering with our labels, and the providers whose refusal is recorded on
	// the consumer. The list is sorted by id. If the parameter provider is not "", it contains only this provider, and
	// the number of requests does not depend on the number of peerings.
	Peers(ctx context.Context, provider string) ([]fleet.Provider, error)
}

// Scope selects attempts. The zero value selects all attempts of the hub.
type Scope struct {
	Group    string // only attempts of this node group
	Provider string // only attempts on this provider
}

// Contains reports whether the scope selects the attempt.
func (s Scope) Contains(a fleet.Attempt) bool {
	return (s.Group == "" || a.Group == s.Group) && (s.Provider == "" || a.Provider.ID == s.Provider)
}

// Backend is the whole interface.
type Backend interface {
	Peerings
	Nodes
	Cordons
	Inventory
	Watcher
}

// Node identifies a node that Join made.
type Node struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// Watcher reports changes of our objects on the consumer, and restores the instance id of a Node that has lost it.
type Watcher interface {
	// Watch calls handle with the Found of an attempt whenever its objects may have changed. At the start, and after
	// each interruption of its watch, it calls handle for every attempt. When the last object of an attempt is gone,
	// it calls handle once, with every field of Found false. It does not call handle concurrently. It restarts an
	// interrupted watch and returns no error. It blocks until ctx ends, and returns the error of ctx.
	Watch(ctx context.Context, handle func(fleet.Found)) error
	// Restamp sets the instance id again on a Node without a providerID, for example after a user deleted the Node
	// and its kubelet registered it again. It does so only if the attempt's virtual node is marked. If the Node is
	// missing, Restamp may request that the virtual kubelet register it now. It does not wait for the Node. It
	// returns nil and changes nothing for an attempt that is not marked, is already stamped or has no objects. It
	// returns ErrConflict when the Node carries another providerID, or another Node carries the instance id. It
	// returns ErrNotYet while the Node does not meet the conditions under which Join stamps. The caller can try again
	// after the next change that Watch reports. A Node that its kubelet and Kubernetes both consider not ready is
	// stamped nevertheless.
	Restamp(ctx context.Context, attempt fleet.Attempt) error
}

// Alive sends one request to the consumer's API server. It is optional: if a backend does not implement it, callers
// use Peers, which should then send only one request.
type Alive interface {
	// Alive returns an error when the consumer's API server does not answer.
	Alive(ctx context.Context) error
}

// OffloadedPods lists the consumer's pods on virtual nodes. It is optional: a backend without virtual nodes need not
// implement it.
type OffloadedPods interface {
	// OffloadedPods calls visit with each pod that Liqo offloads, on the virtual nodes of any installation. It reads
	// the pods page by page. It changes nothing. An error means that some pods were not visited.
	OffloadedPods(ctx context.Context, visit func(*corev1.Pod)) error
	// RemoveEndedPod deletes a pod that has ended, unless the pod has changed since the list. A missing pod is success.
	RemoveEndedPod(ctx context.Context, pod *corev1.Pod) error
}

// Leftovers finds and removes our objects that exist only on a provider. Such objects exist after a history was lost,
// after a peering was removed by force while the provider was unreachable, or after a consumer was rebuilt. It is
// optional: a backend that leaves no such objects need not implement it.
type Leftovers interface {
	// Leftovers lists the provider's objects of our hub and cluster that have no counterpart on the consumer; records of a
	// refusal are excluded. It reads once and changes nothing. Errors: ErrUnreachable, ErrInvalid, ErrDenied.
	Leftovers(ctx context.Context, provider fleet.Provider) ([]fleet.Orphan, error)
	// RemoveLeftover removes the provider's objects of an attempt, if they have not changed since Leftovers listed
	// them and the consumer still has no counterpart. It does not wait until they are gone. For the leftovers of a
	// peering, call RemovePeering.
	RemoveLeftover(ctx context.Context, orphan fleet.Orphan) error
}
