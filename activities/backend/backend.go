// Package backend is the port to whatever lends nodes. It knows peerings, attempts and nodes, and no word of Liqo beyond
// that, so that another way to lend a node fits behind it. backend/liqo is the real one, backend/sim the simulated one;
// backendtest is the one contract suite that both pass.
//
// What every verb promises:
//   - Ensure-style and idempotent: called again, also by another process after a crash at any point, it adopts what it
//     finds by label and goes on. Removing what is absent is success.
//   - Blocking until its end is reached, the context ends, or a verdict is final. It polls or watches by itself; callers
//     bound it with the context.
//   - When the context ends first it returns a *StageError that names the first unmet stage, wrapping the context's
//     error (the cause included).
//   - Progress is called with each change of stage and at least every few seconds while waiting, from the calling
//     goroutine; callers heartbeat from it. It may be nil.
//   - Nothing that is not ours (labels below) is ever changed or removed.
//   - No secret is in an error, a stage message or a returned value.
package backend

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Labels on every object we make, and the annotations recovery needs.
const (
	LabelManagedBy = "liqo-autoscaler.io/managed-by" // always ManagedBy
	LabelHub       = "liqo-autoscaler.io/hub"
	LabelGroup     = "liqo-autoscaler.io/group"
	LabelInstance  = "liqo-autoscaler.io/instance"
	LabelAttempt   = "liqo-autoscaler.io/attempt"

	AnnotationBooking = "liqo-autoscaler.io/booking" // JSON of Booking
	AnnotationStamp   = "liqo-autoscaler.io/stamp"   // the mark: the instance id, see Nodes.Join
	// AnnotationCredentials, on a peering's objects: JSON of fleet.Credentials (a reference, not the secret).
	AnnotationCredentials = "liqo-autoscaler.io/credentials"

	ManagedBy = "liqo-autoscaler"
)

// Progress receives the stage a verb is waiting for and a sentence about it.
type Progress func(stage Stage, message string)

// Provider is a provider cluster: its Liqo cluster id and where the access to it lies.
type Provider struct {
	ID          string            `json:"id"`
	Credentials fleet.Credentials `json:"credentials"`
}

// Attempt is one try of an instance on one Provider; it names every object of the try.
type Attempt struct {
	Group    string   `json:"group"`
	Instance string   `json:"instance"`
	Number   int      `json:"number"`
	Provider Provider `json:"provider"`
}

// ObjectName is the name of the attempt's slice, virtual node and Node.
func (a Attempt) ObjectName() string { return fleet.ObjectName(a.Instance, a.Number) }

// InstanceID is what Join stamps on the Node as providerID.
func (a Attempt) InstanceID() string { return fleet.InstanceID(a.Group, a.Instance) }

// Booking is what recovery needs to rebuild an instance from its objects alone.
type Booking struct {
	Spec     fleet.GroupSpec `json:"spec,omitzero"`
	BookedAt time.Time       `json:"bookedAt"`
	// SpecOf is the object whose booking has the Spec, see Pack; never in an annotation.
	SpecOf string `json:"specOf,omitempty"`
}

// NodeSpec is what Join makes: exactly Shape, with Labels and Taints from the Node's first version on.
type NodeSpec struct {
	Attempt Attempt             `json:"attempt"`
	Shape   corev1.ResourceList `json:"shape"`
	Labels  map[string]string   `json:"labels,omitempty"`
	Taints  []corev1.Taint      `json:"taints,omitempty"`
	Booking Booking             `json:"booking"`
}

// Peerings makes and removes the relation with a Provider, shared by all attempts on it.
type Peerings interface {
	// Identify reads the provider's cluster id over its credentials. Errors: ErrUnreachable, ErrInvalid (broken
	// credentials, not a provider).
	Identify(ctx context.Context, credentials fleet.Credentials) (id string, err error)
	// Establish returns nil once the peering works in the direction consumer -> provider. One that exists without our
	// labels is used as it is, never changed. Errors: ErrUnreachable, ErrDenied, *StageError.
	Establish(ctx context.Context, provider Provider, progress Progress) error
	// Unpeer removes what Establish made, and only that: nil when nothing of ours is left on either side, or the
	// peering is not ours. ErrInUse, and nothing is changed, while a fresh list shows any slice of anyone for that
	// provider (I11) or the peering also serves the other direction. While the provider is unreachable it keeps
	// trying until the context ends.
	Unpeer(ctx context.Context, provider Provider, progress Progress) error
}

// Nodes makes and removes one attempt's node on an established peering.
type Nodes interface {
	// Join returns once the Node is Ready with exactly the spec's shape, the virtual node is marked (AnnotationStamp)
	// and then the Node's providerID is the instance id. It stamps only after Nodes of the instance's earlier attempts
	// are gone. Errors: ErrNotPeered (at once, nothing is made; or while it waits, when the provider's people have removed
	// their part of a peering of ours), ErrDenied, ErrShort (granted smaller than asked), ErrConflict (the name or
	// providerID is taken), ErrUnreachable, *StageError.
	Join(ctx context.Context, spec NodeSpec, progress Progress) (Node, error)
	// Drain removes the mark, cordons the Node and evicts its pods (DaemonSet and mirror pods apart), honouring
	// disruption budgets, until none is left. With force, what is left is deleted with grace period 0. A missing Node
	// is success.
	Drain(ctx context.Context, attempt Attempt, force bool, progress Progress) error
	// Leave removes the mark, the virtual node, its Node and the slice, and returns once they are gone on both sides.
	// Pods still on the node are force-deleted after a short bound. While the provider is unreachable it removes the
	// local VirtualNode and Node first and keeps trying the rest until the context ends.
	Leave(ctx context.Context, attempt Attempt, progress Progress) error
}

// Inventory lists what exists.
type Inventory interface {
	// List returns one Found per attempt with any object of ours on the consumer side, in name order; group "" means all
	// groups. It never touches a provider and never returns a partial list without an error.
	List(ctx context.Context, group string) ([]Found, error)
	// Peers returns the providers with a peering that carries our labels, in id order.
	Peers(ctx context.Context) ([]Provider, error)
}

// Backend is all of it.
type Backend interface {
	Peerings
	Nodes
	Inventory
}

// Node is a node as it came to be.
type Node struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// Found is what exists of one attempt on the consumer.
type Found struct {
	Attempt Attempt  `json:"attempt"`
	Booking *Booking `json:"booking,omitempty"` // nil when the annotation is missing or unreadable
	Slice   bool     `json:"slice"`
	Virtual bool     `json:"virtualNode"`
	Marked  bool     `json:"marked"`
	Node    bool     `json:"node"`
	Stamped bool     `json:"stamped"` // the Node's providerID is the instance id
	Ready   bool     `json:"ready"`   // the Node's Ready condition is True
	Leaving bool     `json:"leaving"` // any of the three is terminating
}

// Watcher tells what happens to our objects on the consumer, and mends the one thing that only we can mend.
type Watcher interface {
	// Watch calls handle with the Found of an attempt whenever it may have changed, and with all of them at the start and
	// after each gap; an attempt whose last object is gone is told once with everything false. Calls come one at a time.
	// It hides broken watches and blocks until ctx ends, whose error it returns.
	Watch(ctx context.Context, handle func(Found)) error
	// Restamp puts the instance id back on a Node that has none, as after somebody deleted the Node and its kubelet
	// registered it anew; only if the attempt's virtual node is marked. Of such a virtual node it may call a missing Node
	// back, which its kubelet registers by itself too, only later; it does not wait for it. Anything else is left alone:
	// not marked, stamped already, not there: success. ErrConflict when the Node carries another providerID, or another
	// Node carries the instance id.
	Restamp(ctx context.Context, attempt Attempt) error
}
