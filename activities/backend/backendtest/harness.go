package backendtest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Harness contains everything that the suite needs in addition to backend.Backend. While the suite runs, no other
// test may use the two providers. The providers must have no object of ours when the suite starts. If the suite
// passes, they have none at its end.
type Harness struct {
	// Backend may implement backend.Leftovers too; otherwise the subtests of that interface are skipped.
	Backend backend.Backend
	// Other is a second backend on the same clusters. It acts as another process after a crash. Default: Backend.
	Other backend.Backend
	// Providers are two provider clusters with their true ids and working credentials.
	Providers [2]fleet.Provider
	// Shape is the size of one node. Each provider has capacity for at least three nodes.
	Shape corev1.ResourceList
	// Group is part of the names of the suite's objects. Two suites with different groups can share a consumer.
	// Default "contract".
	Group string
	// MaxNodes is the number of nodes that one provider can have; 0 means no limit. If it is 1, the subtests that
	// need two nodes are skipped.
	MaxNodes int
	// TaintsLate reports whether a Node receives its taints and annotations only after it is registered. Even then, a
	// stamped Node has all its taints and annotations.
	TaintsLate bool
	// Nodes is the kind of nodes that the backend makes. Default fleet.NodesVirtual.
	Nodes fleet.NodeKind
	// OneSided reports whether a peering leaves the provider without any object.
	OneSided bool
	// Bound is the longest time that the suite waits for one call of a verb that must end. It is generous. Default
	// 60s.
	Bound time.Duration
	// Prompt is the longest time for calls that do not need to wait, such as the removal of an absent object. Default
	// 10s.
	Prompt time.Duration
	// Pass is the timeout of each call when the suite repeats a verb: long enough for some progress, and shorter than
	// the time for which the backend waits for another component. Default 1s.
	Pass time.Duration
	// RefusedFor is the time for which the backends do not use a provider that has removed our Tenant. This time is
	// longer than the removal of a peering takes. If it is 0, the subtests that wait for the end of this time are
	// skipped.
	RefusedFor time.Duration
	World      World
}

// World reads and changes the clusters as a user with kubectl access to all clusters could. Objects and Node are
// required; the other functions are optional.
type World struct {
	// Objects lists every object that carries our labels, on the consumer and on both providers. It also lists the
	// objects that other controllers make from these objects (for Liqo: slices, certificates, quotas, tenants). It
	// omits an object that stays after RemovePeering by design, such as a namespace that existed before.
	Objects func(ctx context.Context) ([]Object, error)
	// Node reads a Node of the consumer. If the Node is missing, it returns an error for which apierrors.IsNotFound
	// is true.
	Node func(ctx context.Context, name string) (*corev1.Node, error)

	// PutPod puts a running pod on a Node of the consumer; Pods lists the names of the pods on the Node.
	PutPod func(ctx context.Context, node string, pod Pod) error
	Pods   func(ctx context.Context, node string) ([]string, error)
	// PutSlice makes another owner's slice, without our labels, on the provider's existing peering.
	PutSlice func(ctx context.Context, provider fleet.Provider, name string) (undo Undo, err error)
	// PutNode makes another owner's Node of that name on the consumer.
	PutNode func(ctx context.Context, name string) (undo Undo, err error)
	// PutPeering makes a working peering by hand, without our labels.
	PutPeering func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// DeleteNode, DeleteVirtualNode and DeleteSlice each delete one object of an attempt, as kubectl delete does.
	// They do not wait for the consequences. The kubelet registers a deleted Node again. After the deletion of a
	// virtual node, Liqo removes its Node. After the deletion of a slice, Liqo removes the virtual node, the Node and
	// the slice on the provider.
	DeleteNode, DeleteVirtualNode, DeleteSlice func(ctx context.Context, a fleet.Attempt) error
	// SliceThere reads the annotations of the attempt's slice on the provider.
	SliceThere func(ctx context.Context, a fleet.Attempt) (annotations map[string]string, err error)
	// SetProviderID sets the providerID of a Node that has none, as a cloud controller manager does.
	SetProviderID func(ctx context.Context, node, providerID string) error
	// Unreachable returns credentials with an address that does not answer. They are well-formed and contain the
	// parameter secret.
	Unreachable func(t *testing.T, secret string) fleet.Credentials
	// Stall stops the provider's controllers while its API still answers, so that Establish hangs at StallStage. If
	// StallStage is empty, Establish may hang at any stage.
	Stall      func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	StallStage backend.Stage
	// Cut makes the provider unreachable for us and for the consumer cluster.
	Cut func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Deny cordons our Tenant, so that the provider refuses our new slices.
	Deny func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Close makes the provider's administrators refuse us as a whole: they cordon, drain or remove our Tenant. The
	// Undo reverts a cordon or drain, but does not restore a removed Tenant.
	Close func(ctx context.Context, provider fleet.Provider, kind fleet.RefusingKind) (undo Undo, err error)
	// Shrink makes the provider grant less than Shape.
	Shrink func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Forget removes all objects of a provider from the consumer, by force. The objects on the provider stay, as
	// after the removal of a peering by force while the provider was unreachable. Forget is nil if it is not certain
	// which objects such a removal leaves.
	Forget func(ctx context.Context, provider fleet.Provider) error
	// Fill takes capacity of the provider, so that less than Shape is free. The provider's controller for slices of
	// Class then has no capacity for a node.
	Fill func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
}

// Undo reverts the effect of a function of World. It may be called twice.
type Undo func(ctx context.Context) error

// Object is one object on the consumer or on a provider.
type Object struct {
	Where    string // "consumer", or the provider's id
	Provider string // the provider of the object's peering or attempt
	Kind     string
	Name     string // contains the attempt's name, also for objects that are derived from ours
	UID      string // may be empty; a changed UID shows that the object was made again
	// Refusal reports whether the object records a provider's refusal (LabelRefused). Such an object stays when the
	// peering is removed.
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
