package backendtest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Harness contains everything that the suite needs in addition to the port. The two providers belong to the suite while
// it runs. They must have none of our objects when the suite starts, and have none after it has passed.
type Harness struct {
	// Backend may implement backend.Leftovers too; otherwise the subtests of that interface are skipped.
	Backend backend.Backend
	// Other is a second backend on the same clusters. It acts as another process after a crash. Default: Backend.
	Other backend.Backend
	// Providers are two provider clusters with their true ids and working credentials.
	Providers [2]fleet.Provider
	// Shape is the size of one node. Each provider has capacity for at least three nodes.
	Shape corev1.ResourceList
	// Group names the suite's objects; it lets two suites share a consumer. Default "contract".
	Group string
	// MaxNodes is the number of nodes that one provider can carry; 0 means no bound. With 1 the subtests that need two
	// nodes are skipped.
	MaxNodes int
	// TaintsLate reports whether a Node receives its taints, and the values that are not labels, only after it is
	// registered. A stamped Node has both.
	TaintsLate bool
	// Nodes is the kind of nodes that the backend makes. Default fleet.NodesVirtual.
	Nodes fleet.NodeKind
	// OneSided reports whether a peering leaves the provider without any object.
	OneSided bool
	// Bound is a generous bound for any one verb that must end. Default 60s.
	Bound time.Duration
	// Prompt bounds answers that need no waiting, such as the removal of an absent object. Default 10s.
	Prompt time.Duration
	// Pass is the timeout of each call when the suite repeats a verb: long enough for some progress, and shorter than
	// the time for which the backend waits for another party. Default 1s.
	Pass time.Duration
	// RefusedFor is the time for which the backends do not use a provider that has removed our Tenant. It is longer
	// than the removal of a peering takes. With 0 the subtests that wait for its end are skipped.
	RefusedFor time.Duration
	World      World
}

// World reads and changes the clusters like a person with a shell on both sides. Objects and Node are required, the
// other functions are optional.
type World struct {
	// Objects lists every object that carries our labels, on the consumer and on both providers. It also lists every
	// object that other controllers derive from them there (with Liqo: slices, certificates, quotas, tenants). It omits
	// an object that stays by design after RemovePeering (a namespace that existed before us).
	Objects func(ctx context.Context) ([]Object, error)
	// Node reads a Node of the consumer. For a missing Node apierrors.IsNotFound is true of the error.
	Node func(ctx context.Context, name string) (*corev1.Node, error)

	// PutPod puts a running pod on a Node of the consumer; Pods lists the names of the pods that are still there.
	PutPod func(ctx context.Context, node string, pod Pod) error
	Pods   func(ctx context.Context, node string) ([]string, error)
	// PutSlice makes another owner's slice, without our labels, on the provider's existing peering.
	PutSlice func(ctx context.Context, provider fleet.Provider, name string) (undo Undo, err error)
	// PutNode makes another owner's Node of that name on the consumer.
	PutNode func(ctx context.Context, name string) (undo Undo, err error)
	// PutPeering makes a working peering by hand, without our labels.
	PutPeering func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// DeleteNode, DeleteVirtualNode and DeleteSlice delete that object of an attempt, as kubectl delete does, and do
	// not wait for the consequences: the kubelet registers a deleted Node again; Liqo removes the Node of a deleted
	// virtual node; Liqo removes the virtual node, the Node and the provider's slice of a deleted slice.
	DeleteNode, DeleteVirtualNode, DeleteSlice func(ctx context.Context, a fleet.Attempt) error
	// SliceThere reads the annotations of the attempt's slice on the provider.
	SliceThere func(ctx context.Context, a fleet.Attempt) (annotations map[string]string, err error)
	// SetProviderID sets the providerID of a Node that has none, as a cloud controller manager does.
	SetProviderID func(ctx context.Context, node, providerID string) error
	// Unreachable returns well-formed credentials that contain the secret and whose address does not answer.
	Unreachable func(t *testing.T, secret string) fleet.Credentials
	// Stall stops the provider's controllers while its API still answers, so that Establish hangs at StallStage (any
	// stage when that is empty).
	Stall      func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	StallStage backend.Stage
	// Cut makes the provider unreachable for us and for the consumer cluster.
	Cut func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Deny makes the provider refuse our new slices: a cordoned Tenant.
	Deny func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Close makes the provider's administrators refuse us as a whole: they cordon, drain or remove our Tenant. The undo
	// reverts that, as far as a Tenant exists.
	Close func(ctx context.Context, provider fleet.Provider, kind fleet.RefusingKind) (undo Undo, err error)
	// Shrink makes the provider grant less than Shape.
	Shrink func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Forget removes all objects of a provider from the consumer, by force. The provider's side stays, as after a
	// peering that was removed by force while the provider was unreachable. It is nil where it is not certain which
	// objects such a removal leaves.
	Forget func(ctx context.Context, provider fleet.Provider) error
	// Fill leaves less room than Shape at the provider, according to the controller that decides for Class there.
	Fill func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
}

// Undo reverts the effect of a function of World. It may be called twice.
type Undo func(ctx context.Context) error

// Object is one object on the consumer or on a provider.
type Object struct {
	Where    string // "consumer", or the provider's id
	Provider string // the provider of the object's peering or attempt, on either side
	Kind     string
	Name     string // contains the attempt's name, also for objects that are derived from ours
	UID      string // may be empty; a changed UID shows the suite that an object was deleted and made again
	// Refusal reports whether the object records a provider's refusal (LabelRefused), and so stays when the peering is
	// removed.
	Refusal bool
}

// Pod is a pod to put on a node.
type Pod struct {
	Name      string
	DaemonSet bool // owned by a DaemonSet: never evicted
	Protected bool // a disruption budget forbids its eviction
	Held      bool // a finalizer that is never removed keeps the pod, also after its end
}

func (h Harness) withDefaults() Harness {
	if h.Other == nil {
		h.Other = h.Backend
	}
	if h.Group == "" {
		h.Group = "contract"
	}
	if h.Bound == 0 {
		h.Bound = time.Minute
	}
	if h.Prompt == 0 {
		h.Prompt = 10 * time.Second
	}
	if h.Pass == 0 {
		h.Pass = time.Second
	}
	return h
}
