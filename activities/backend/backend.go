// Package backend is the port to the system that makes nodes from the capacity of other clusters. It describes
// peerings, attempts and nodes, and does not depend on Liqo. backend/liqo and backend/microvm are real implementations,
// backend/sim is the simulated one; all pass the contract suite in backendtest. Some words come from Liqo's world, and
// other backends have objects that play the same part: the slice is the capacity that the provider grants, the virtual
// node is the object that carries the mark (AnnotationStamp), and the Node results from both.
//
// Promises of every verb:
//   - It is idempotent: called again, even by another process after a crash at any point, it adopts the objects that it
//     finds by label and continues. Removing an absent object is success.
//   - It blocks until its goal is reached, the context ends, or an error is final. It polls or watches internally;
//     callers bound it with the context.
//   - When the context ends first it returns a *StageError that names the first unmet stage. The error wraps the
//     context's error with its cause, and also ErrUnreachable when the provider does not answer.
//   - Every verb except Join may be called in passes of a few seconds, by any process, until it returns nil: it
//     measures no wait in memory. Such a caller sets WithStartTime.
//   - Progress is called with each change of stage and at least every few seconds while waiting, from the calling
//     goroutine; callers heartbeat from it. It may be nil.
//   - It never changes or removes an object that is not owned by us (labels below).
//   - Errors, stage messages and returned values contain no secrets.
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

// Labels on every object that we make, and the annotations that recovery needs. A Node has only LabelGroup as a label,
// and all these keys as annotations: CA considers a group's Nodes similar while their labels are equal.
const (
	LabelManagedBy = "liqo-autoscaler.io/managed-by" // always ManagedBy
	LabelHub       = "liqo-autoscaler.io/hub"
	LabelGroup     = "liqo-autoscaler.io/group"
	LabelInstance  = "liqo-autoscaler.io/instance"
	LabelAttempt   = "liqo-autoscaler.io/attempt"
	// LabelRefused marks the objects that record a provider's refusal. They stay when its peering is removed.
	LabelRefused = "liqo-autoscaler.io/refused"

	AnnotationBooking = "liqo-autoscaler.io/booking" // JSON of Booking
	AnnotationStamp   = "liqo-autoscaler.io/stamp"   // the mark: the instance id, see Nodes.Join
	// AnnotationCredentials is on a peering's objects: JSON of fleet.Credentials (a reference, not the secret).
	AnnotationCredentials = "liqo-autoscaler.io/credentials"

	// AnnotationCordoned marks a Node that Cordon has cordoned.
	AnnotationCordoned = "liqo-autoscaler.io/cordoned"

	// AnnotationHourlyPrice and AnnotationPriceCurrency contain the price per hour of a Node. A Node whose offer had no
	// price has neither annotation. They are not labels, because all Nodes of a group have equal labels.
	AnnotationHourlyPrice   = "liqo-autoscaler.io/hourly-price"
	AnnotationPriceCurrency = "liqo-autoscaler.io/price-currency"

	ManagedBy = "liqo-autoscaler"
)

// NodeSpec describes the Node that Join makes: exactly Shape, with Labels and Taints from the Node's first version on.
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

// Kind returns ErrInvalid when the spec's group has another kind of nodes than the backend makes, because CA received a
// template of that other kind.
func (s NodeSpec) Kind(makes fleet.NodeKind) error {
	if requested := cmp.Or(s.Booking.Spec.Nodes, fleet.NodesVirtual); requested != makes {
		return fmt.Errorf("group %s has nodes: %s, and this worker makes nodes: %s: give it a group of these: %w",
			s.Attempt.Group, requested, makes, ErrInvalid)
	}
	return nil
}

// Peerings makes and removes the relation with a Provider, which all attempts on it share.
type Peerings interface {
	// Identify reads the provider's cluster id with its credentials. Errors: ErrUnreachable, ErrInvalid (broken
	// credentials, not a provider).
	Identify(ctx context.Context, credentials fleet.Credentials) (id string, err error)
	// Establish returns nil once the peering works in the direction consumer -> provider. It uses a peering without our
	// labels as it is, and never changes it. It makes the network that provider.Network describes first. It uses a
	// connected network of another owner, and returns ErrConflict when such a network is not connected. While the
	// provider refuses this cluster, it returns a *RefusingError and makes nothing. It also reports a refusal when the
	// provider's administrators have removed their part of our peering. Errors: ErrUnreachable, ErrDenied, *StageError.
	// The *StageError matches ErrNoRoom while a pod that the peering needs on the consumer cannot be scheduled.
	Establish(ctx context.Context, provider fleet.Provider, progress Progress) error
	// RemovePeering removes the objects that Establish made, and only these. It returns nil when no object owned by us
	// is left on either side, or the peering is not owned by us. It returns ErrInUse and changes nothing while a fresh
	// list shows a slice of any owner for that provider (I11), or the peering also serves the other direction. The
	// objects that record a present refusal stay, with LabelRefused. In this case it returns a *RefusingError once all
	// other objects are removed. While the provider is unreachable it keeps trying until the context ends.
	RemovePeering(ctx context.Context, provider fleet.Provider, progress Progress) error
	// Refusal reads whether the provider refuses this cluster now, and returns nil when it does not. It does not wait.
	// Errors: ErrUnreachable, ErrInvalid, ErrDenied (the credentials may not read it).
	Refusal(ctx context.Context, provider fleet.Provider) (*fleet.ProviderRefusal, error)
	// Observe reads once how the provider treats this cluster, and changes nothing. Errors: ErrCredentials when the
	// provider does not accept our credentials or grants them too few permissions, ErrInvalid when they are broken or lead
	// to another cluster, ErrUnreachable. Without a peering it returns the zero Observation once the provider has
	// answered.
	Observe(ctx context.Context, provider fleet.Provider) (Observation, error)
}

// Observation describes how a provider treats this cluster. Every field was read successfully.
type Observation struct {
	Tenant fleet.RefusingKind
	// Absent lists the attempts, by object name, whose slice exists on the consumer but not on the provider.
	Absent []string
	// Network describes the fault of the network in words; "" when it has no fault or does not exist. NetworkHere means
	// that the consumer's own end does not run.
	Network     string
	NetworkHere bool
	// Fault is the fault of the peering on the consumer, with a remedy. It is reported even while the peering is being
	// made.
	Fault fleet.Fault
	// Heard contains, for each end of the network, the time at which that end last measured that it reaches the other
	// end, by its own clock. It is "" for an end that does not measure. An end without a new measurement for Quiet is
	// dead; Quiet is 0 when that bound is unknown.
	Heard []string
	Quiet time.Duration
	// Message contains details, if there are any.
	Message string
}

// Nodes makes and removes the node of one attempt on an established peering.
type Nodes interface {
	// Join creates the node of one attempt. It returns once the Node is Ready with exactly the spec's shape, accepts
	// pods, and is stamped. Join first marks the virtual node (AnnotationStamp). It then stamps the Node: it sets the
	// Node's providerID to the instance id. It may do both as soon as the Node is complete except for Kubernetes' own
	// taint not-ready. It neither marks nor stamps while another Node carries the instance id or another attempt's
	// virtual node is marked. When another attempt is marked and stamped and is not lost, that attempt is the instance,
	// and Join returns ErrConflict. Join searches for such objects at most a second before it marks, and again between
	// mark and stamp.
	//
	// Errors: ErrNotPeered (returned immediately, with nothing made), ErrDenied (a *RefusingError when the provider
	// refuses this cluster as a whole), ErrShort (the grant is smaller than the request), ErrFull (the controller that
	// decides for Class has no room), ErrInvalid (another kind of nodes), ErrConflict (also when the name or providerID
	// is taken), ErrUnreachable, *StageError.
	Join(ctx context.Context, spec NodeSpec, progress Progress) (Node, error)
	// Drain removes the mark, cordons the Node and evicts its pods (except DaemonSet and mirror pods), honouring
	// disruption budgets, until no pod is left. With force it first puts TaintToBeDeleted on the Node, and then deletes
	// the pods with grace period 0; it does not wait for the provider. A missing Node is success.
	Drain(ctx context.Context, attempt fleet.Attempt, force bool, progress Progress) error
	// Return removes the mark, the virtual node, its Node and the slice, in this order, and returns once they are gone
	// on both sides. Pods still on the node a short while after StartTime are deleted with grace period 0. While the
	// provider is unreachable it removes the local VirtualNode and Node first and keeps trying the rest until the
	// context ends.
	Return(ctx context.Context, attempt fleet.Attempt, progress Progress) error
}

// Cordons keeps new pods off the Nodes of a provider that accepts no new pods.
type Cordons interface {
	// Cordon cordons the attempt's Node and records on the Node that it did so. If cordoned is false, it removes only a
	// cordon that it has set itself: a Node that another actor has cordoned, or that CA is deleting, stays as it is. A
	// missing Node is success.
	Cordon(ctx context.Context, attempt fleet.Attempt, cordoned bool) error
}

// Inventory lists the existing objects and peerings.
type Inventory interface {
	// List returns one Found per attempt with any object owned by us on the consumer, in name order; group "" means all
	// groups. It never touches a provider and never returns a partial list without an error.
	List(ctx context.Context, group string) ([]fleet.Found, error)
	// Peers returns the providers with a peering that carries our labels, or with a refusal that the consumer remembers,
	// in id order.
	Peers(ctx context.Context) ([]fleet.Provider, error)
}

// Backend is the whole port.
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
	// Watch calls handle with the Found of an attempt whenever it may have changed, and with the Found of every attempt
	// at the start and after each gap. It reports an attempt whose last object is gone once, with every field of Found
	// false. It makes one call at a time. It restarts a broken watch without an error. It blocks until ctx ends, and
	// returns the error of ctx.
	Watch(ctx context.Context, handle func(fleet.Found)) error
	// Restamp sets the instance id again on a Node without a providerID, for example after a user deleted the Node and
	// its kubelet registered it again. It does so only if the attempt's virtual node is marked. If the Node is missing,
	// Restamp may make the virtual kubelet register it sooner than the kubelet would on its own, and does not wait for
	// the Node. It returns nil and changes nothing for an attempt that is not marked, is already stamped or has no
	// objects. It returns ErrConflict when the Node carries another providerID, or another Node carries the instance
	// id. It returns ErrNotYet while Join would not stamp the Node yet, unless its kubelet and Kubernetes agree that
	// the Node is not ready. Watch then reports the next change.
	Restamp(ctx context.Context, attempt fleet.Attempt) error
}

// Alive sends one request to the consumer's API server. It is optional: a backend whose Peers is a single request need
// not implement it.
type Alive interface {
	// Alive returns an error when the consumer's API server does not answer.
	Alive(ctx context.Context) error
}

// OffloadedPods lists the consumer's pods on virtual nodes. It is optional: a backend without virtual nodes need not
// implement it.
type OffloadedPods interface {
	// OffloadedPods calls visit with each pod that Liqo offloads, of any installation, page by page. It changes nothing.
	// An error means that some pods were not visited.
	OffloadedPods(ctx context.Context, visit func(*corev1.Pod)) error
	// RemoveEndedPod deletes a pod that has ended, unless the pod has changed since the list. A missing pod is success.
	RemoveEndedPod(ctx context.Context, pod *corev1.Pod) error
}

// Leftovers finds and removes our objects that exist on a provider only: after a lost history, after a peering was
// removed by force while the provider was unreachable, or after a consumer was rebuilt. It is optional: a backend that
// leaves no such objects need not implement it.
type Leftovers interface {
	// Leftovers lists the provider's objects of our hub and cluster that have no counterpart on the consumer; records of a
	// refusal are excluded. It reads once and changes nothing. Errors: ErrUnreachable, ErrInvalid, ErrDenied.
	Leftovers(ctx context.Context, provider fleet.Provider) ([]fleet.Orphan, error)
	// RemoveLeftover removes the provider's objects of an attempt if they are unchanged since the list, and the consumer
	// still has no counterpart. It does not wait until they are gone. RemovePeering removes the leftovers of a peering.
	RemoveLeftover(ctx context.Context, orphan fleet.Orphan) error
}
