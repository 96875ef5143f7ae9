// Package backend is the port to the system that makes nodes from others' capacity. It knows peerings, attempts and
// nodes, and nothing of Liqo. backend/liqo and backend/microvm are real implementations, backend/sim is the simulated
// one; all pass the contract suite in backendtest. Some words are of Liqo's world, and others have what plays the part:
// the slice is what the provider gives, the virtual node what carries the mark, and the Node comes of both.
//
// What every verb promises:
//   - It is idempotent: called again, also by another process after a crash at any point, it adopts the objects that it
//     finds by label and goes on. Removing an absent object is success.
//   - It blocks until its goal is reached, the context ends, or an error is final. It polls or watches by itself;
//     callers bound it with the context.
//   - When the context ends first it returns a *StageError that names the first unmet stage, wrapping the context's
//     error (the cause included), and ErrUnreachable too when it is the provider that does not answer.
//   - Every verb but Join may be called in passes of a few seconds, by any process, until it returns nil: it measures
//     no wait in memory. Such a caller sets WithBegun.
//   - Progress is called with each change of stage and at least every few seconds while waiting, from the calling
//     goroutine; callers heartbeat from it. It may be nil.
//   - It never changes or removes an object that is not owned by us (labels below).
//   - No secret is in an error, a stage message or a returned value.
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

// Labels on every object we make, and the annotations that recovery needs. A Node has only LabelGroup as a label, and
// all of them as annotations: CA takes a group's Nodes for alike as long as their labels are.
const (
	LabelManagedBy = "liqo-autoscaler.io/managed-by" // always ManagedBy
	LabelHub       = "liqo-autoscaler.io/hub"
	LabelGroup     = "liqo-autoscaler.io/group"
	LabelInstance  = "liqo-autoscaler.io/instance"
	LabelAttempt   = "liqo-autoscaler.io/attempt"
	// LabelRefused is on what records a provider's refusal and therefore stays when its peering is removed.
	LabelRefused = "liqo-autoscaler.io/refused"

	AnnotationBooking = "liqo-autoscaler.io/booking" // JSON of Booking
	AnnotationStamp   = "liqo-autoscaler.io/stamp"   // the mark: the instance id, see Nodes.Join
	// AnnotationCredentials, on a peering's objects: JSON of fleet.Credentials (a reference, not the secret).
	AnnotationCredentials = "liqo-autoscaler.io/credentials"

	// AnnotationCordoned is on a Node that Cordon has cordoned.
	AnnotationCordoned = "liqo-autoscaler.io/cordoned"

	// AnnotationHourlyPrice and AnnotationPriceCurrency, on a Node, are its price per hour. A Node whose offer had no
	// price has neither annotation. They are not labels, because all Nodes of a group have equal labels.
	AnnotationHourlyPrice   = "liqo-autoscaler.io/hourly-price"
	AnnotationPriceCurrency = "liqo-autoscaler.io/price-currency"

	ManagedBy = "liqo-autoscaler"
)

// NodeSpec is what Join makes: exactly Shape, with Labels and Taints from the Node's first version on.
type NodeSpec struct {
	Attempt fleet.Attempt       `json:"attempt"`
	Shape   corev1.ResourceList `json:"shape"`
	// Class is the offer's: by whom the provider has it decided; "" means whom it has by default.
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

// Kind is ErrInvalid when the spec is of another kind of nodes than the backend makes: CA was told of others.
func (s NodeSpec) Kind(makes fleet.NodeKind) error {
	if asked := cmp.Or(s.Booking.Spec.Nodes, fleet.NodesVirtual); asked != makes {
		return fmt.Errorf("group %s has nodes: %s, and this worker makes nodes: %s: give it a group of these: %w",
			s.Attempt.Group, asked, makes, ErrInvalid)
	}
	return nil
}

// Peerings makes and removes the relation with a Provider, shared by all attempts on it.
type Peerings interface {
	// Identify reads the provider's cluster id over its credentials. Errors: ErrUnreachable, ErrInvalid (broken
	// credentials, not a provider).
	Identify(ctx context.Context, credentials fleet.Credentials) (id string, err error)
	// Establish returns nil once the peering works in the direction consumer -> provider. A peering that exists without
	// our labels is used as it is, never changed. Its network is what provider.Network says, made before all else; one
	// that others have made is used while it is connected, else ErrConflict. While the provider refuses it is a
	// *RefusingError, and nothing is made: also when its administrators have removed their part of our peering. Errors:
	// ErrUnreachable, ErrDenied, *StageError, which matches ErrNoRoom while a pod that it needs here finds no room.
	Establish(ctx context.Context, provider fleet.Provider, progress Progress) error
	// RemovePeering removes what Establish made, and only that: nil when no object owned by us is left on either side, or
	// the peering is not ours. ErrInUse, and nothing is changed, while a fresh list shows anybody's slice for that
	// provider (I11) or the peering also serves the other direction. What records a refusal that is in force stays, with
	// LabelRefused: a *RefusingError, once everything else is removed. While the provider is unreachable it keeps trying
	// until the context ends.
	RemovePeering(ctx context.Context, provider fleet.Provider, progress Progress) error
	// Refusal reads whether the provider refuses this cluster now; nil when it does not. It does not wait. Errors:
	// ErrUnreachable, ErrInvalid, ErrDenied (the credentials may not read it).
	Refusal(ctx context.Context, provider fleet.Provider) (*fleet.ProviderRefusal, error)
	// Observe looks once at what the provider makes of us, and changes nothing. Errors: ErrCredentials when it does not
	// accept our credentials or allows them too little, ErrInvalid when they are broken or lead to another cluster,
	// ErrUnreachable. Without a peering it is the zero Observation once the provider has answered.
	Observe(ctx context.Context, provider fleet.Provider) (Observation, error)
}

// Observation is what a provider makes of us; all of it was read successfully.
type Observation struct {
	Tenant fleet.RefusingKind
	// Absent are the attempts, by object name, with a slice on the consumer and none on the provider.
	Absent []string
	// Network is what is wrong with the network, in words; "" when nothing is, or there is none. NetworkHere: it is the
	// consumer's own end that does not run.
	Network     string
	NetworkHere bool
	// Fault is what is wrong with the peering on the consumer, and what to do. It is told without a peering too: one that
	// is being made.
	Fault fleet.Fault
	// Heard is when each of its ends has last measured that it reaches the other, by its own clock; "" for one that does
	// not measure. One that has not measured anew for Quiet is dead; 0 when that is not known.
	Heard []string
	Quiet time.Duration
	// Message says more where there is more to say.
	Message string
}

// Nodes makes and removes one attempt's node on an established peering.
type Nodes interface {
	// Join returns once the Node is Ready with exactly the spec's shape and takes pods, the virtual node is marked
	// (AnnotationStamp) and then the Node's providerID is the instance id; it may write both as soon as all that is
	// missing is that Kubernetes takes its taint not-ready off. It neither marks nor stamps while another Node carries the
	// instance id or another attempt's virtual node is marked; when another attempt has both and is not lost, that one is
	// the instance: ErrConflict. It has looked for those at most a second before the mark, and looks again between mark
	// and stamp. Errors: ErrNotPeered (at once, nothing is made), ErrDenied (a *RefusingError when the
	// provider refuses this cluster as a whole), ErrShort (granted smaller than asked), ErrFull (whoever decides
	// for Class has no room), ErrInvalid (another kind of nodes), ErrConflict (also when the name or providerID is taken),
	// ErrUnreachable, *StageError.
	Join(ctx context.Context, spec NodeSpec, progress Progress) (Node, error)
	// Drain removes the mark, cordons the Node and evicts its pods (DaemonSet and mirror pods apart), honouring
	// disruption budgets, until none is left. With force it first puts TaintToBeDeleted on the Node, and then deletes
	// the pods with grace period 0; it does not wait for the provider. A missing Node is success.
	Drain(ctx context.Context, attempt fleet.Attempt, force bool, progress Progress) error
	// Return removes the mark, the virtual node, its Node and the slice, in this order, and returns once they are gone on
	// both sides. Pods still on the node a short while after Begun are deleted with grace period 0. While the provider is
	// unreachable it removes the local VirtualNode and Node first and keeps trying the rest until the context ends.
	Return(ctx context.Context, attempt fleet.Attempt, progress Progress) error
}

// Cordons keeps new pods off the Nodes of a provider that takes none.
type Cordons interface {
	// Cordon cordons the attempt's Node and remembers on it that it was us; without cordoned it takes back what it did,
	// and only that: a Node that others have cordoned, or that CA is deleting, stays as it is. A missing Node is success.
	Cordon(ctx context.Context, attempt fleet.Attempt, cordoned bool) error
}

// Inventory lists what exists.
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

// Node is a node that Join made.
type Node struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// Watcher reports what happens to our objects on the consumer, and repairs the one thing that only we can repair.
type Watcher interface {
	// Watch calls handle with the Found of an attempt whenever it may have changed, and with all of them at the start and
	// after each gap; an attempt whose last object is gone is reported once with everything false. Calls come one at a
	// time. It hides broken watches and blocks until ctx ends, whose error it returns.
	Watch(ctx context.Context, handle func(fleet.Found)) error
	// Restamp puts the instance id back on a Node that has none, as after somebody deleted the Node and its kubelet
	// registered it anew; only if the attempt's virtual node is marked. If the Node is missing, it may make the virtual
	// kubelet register it sooner than the kubelet would by itself; it does not wait for that. An attempt that is not
	// marked, is stamped already or has no objects is left alone: success. ErrConflict when the Node carries another
	// providerID, or another Node carries the instance id. ErrNotYet while the Node is one that Join would not stamp yet,
	// unless it is settled that it is not ready: Watch tells when it changes.
	Restamp(ctx context.Context, attempt fleet.Attempt) error
}

// Alive asks the consumer's API server with one request. A backend whose Peers takes no more need not be one.
type Alive interface {
	// Alive is an error when the consumer's API server does not answer.
	Alive(ctx context.Context) error
}

// OffloadedPods lists the consumer's pods on virtual nodes. A backend without virtual nodes need not be one.
type OffloadedPods interface {
	// OffloadedPods calls visit with each pod that Liqo offloads, of any installation, page by page. It changes nothing.
	// An error means that some pods were not visited.
	OffloadedPods(ctx context.Context, visit func(*corev1.Pod)) error
	// RemoveEndedPod deletes a pod that has ended, unless it has changed since the list. A pod that is gone is success.
	RemoveEndedPod(ctx context.Context, pod *corev1.Pod) error
}

// Leftovers finds and removes what only a provider still has of us, after a lost history, a peering that was removed by
// force while the provider was away, or a consumer that was rebuilt. A backend that leaves nothing so need not be one.
type Leftovers interface {
	// Leftovers lists what is ours on the provider, by our hub and cluster, and has no counterpart on the consumer; a
	// record of a refusal is none. It asks once and changes nothing. Errors: ErrUnreachable, ErrInvalid, ErrDenied.
	Leftovers(ctx context.Context, provider fleet.Provider) ([]fleet.Orphan, error)
	// RemoveLeftover removes the provider's part of an attempt if it still is what was listed, and the consumer still has
	// none. It does not wait until it is gone. What is left of a peering RemovePeering removes.
	RemoveLeftover(ctx context.Context, orphan fleet.Orphan) error
}
