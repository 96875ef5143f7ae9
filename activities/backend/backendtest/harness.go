package backendtest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Harness is what the suite needs besides the port. The two providers belong to the suite while it runs; nothing we own
// may exist on them when it starts, and nothing does when it has passed.
type Harness struct {
	// Backend may be a backend.Leftovers too; if it is not, what that promises is skipped.
	Backend backend.Backend
	// Other is a second backend on the same clusters, as another process has it after a crash. Default: Backend.
	Other backend.Backend
	// Providers are two provider clusters with their true ids and working credentials.
	Providers [2]fleet.Provider
	// Shape has room on each provider at least three times.
	Shape corev1.ResourceList
	// Group names the suite's objects; it lets two suites share a consumer. Default "contract".
	Group string
	// MaxNodes is how many nodes one provider can carry; 0 means no bound. 1 skips what needs two.
	MaxNodes int
	// TaintsLate says that a Node gets its taints only after it is registered, and what is on no label; stamped it has
	// both.
	TaintsLate bool
	// Nodes is what the backend makes. Default fleet.NodesVirtual.
	Nodes fleet.NodeKind
	// OneSided says that a peering leaves nothing on the provider.
	OneSided bool
	// Bound is generous for any one verb that must come to its end. Default 60s.
	Bound time.Duration
	// Prompt bounds answers that need no waiting, such as the removal of what is absent. Default 10s.
	Prompt time.Duration
	// Pass is how long one call lasts where a verb is called again and again: enough for some progress, and less than what
	// the backend gives others a while for. Default 1s.
	Pass time.Duration
	// RefusedFor is how long the backends leave a provider alone that has removed our Tenant: longer than the removal of
	// a peering takes. 0 skips what waits for its end.
	RefusedFor time.Duration
	World      World
}

// World is the clusters as a person with a shell on both sides sees and changes them. Objects and Node are required,
// the others optional.
type World struct {
	// Objects lists everything that carries our labels, on the consumer and on both providers, and everything that
	// others make of it there (with Liqo: slices, certificates, quotas, tenants). What stays by design after an unpeer (a
	// namespace that was there before us) is not listed.
	Objects func(ctx context.Context) ([]Object, error)
	// Node reads a Node of the consumer; apierrors.IsNotFound tells that it is missing.
	Node func(ctx context.Context, name string) (*corev1.Node, error)

	// PutPod puts a running pod on a Node of the consumer; Pods lists the names of those still there.
	PutPod func(ctx context.Context, node string, pod Pod) error
	Pods   func(ctx context.Context, node string) ([]string, error)
	// PutSlice makes someone else's slice on the provider's existing peering: none of our labels.
	PutSlice func(ctx context.Context, provider fleet.Provider, name string) (undo Undo, err error)
	// PutNode makes someone else's Node of that name on the consumer.
	PutNode func(ctx context.Context, name string) (undo Undo, err error)
	// PutPeering makes a working peering by hand: none of our labels.
	PutPeering func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// DeleteNode, DeleteVirtualNode and DeleteSlice delete that object of an attempt, as kubectl delete does, and return
	// without waiting for what follows: a deleted Node is registered again by its kubelet, a deleted virtual node takes
	// its Node with it, a deleted slice takes both and its other side.
	DeleteNode, DeleteVirtualNode, DeleteSlice func(ctx context.Context, a fleet.Attempt) error
	// SliceThere reads the annotations of the attempt's slice on its provider.
	SliceThere func(ctx context.Context, a fleet.Attempt) (annotations map[string]string, err error)
	// SetProviderID sets the providerID of a Node that has none, as a cloud controller manager does.
	SetProviderID func(ctx context.Context, node, providerID string) error
	// Unreachable gives credentials that are well formed, contain the secret, and lead to nobody.
	Unreachable func(t *testing.T, secret string) fleet.Credentials
	// Stall stops the provider's controllers while its API still answers, so that Establish hangs at StallStage (any
	// stage when that is empty).
	Stall      func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	StallStage backend.Stage
	// Cut makes the provider unreachable for us and for the consumer cluster.
	Cut func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Deny makes the provider refuse our new slices: a cordoned Tenant.
	Deny func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Close has the provider's people refuse us as a whole: they cordon, drain or remove our Tenant. The undo takes it
	// back, as far as there is a Tenant.
	Close func(ctx context.Context, provider fleet.Provider, kind fleet.RefusingKind) (undo Undo, err error)
	// Shrink makes the provider grant less than Shape.
	Shrink func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
	// Forget removes all that the consumer has of a provider, by force: the provider's side stays, as after a peering
	// that was removed by force while the provider was away. nil: what it leaves is not certain.
	Forget func(ctx context.Context, provider fleet.Provider) error
	// Fill leaves less room than Shape at the provider, as whoever decides for Class there finds.
	Fill func(ctx context.Context, provider fleet.Provider) (undo Undo, err error)
}

// Undo takes back what a function of World did. It may be called twice.
type Undo func(ctx context.Context) error

// Object is one object on either side.
type Object struct {
	Where    string // "consumer", or the provider's id
	Provider string // the provider it has to do with, on either side
	Kind     string
	Name     string // it contains the attempt's name, as what others derive from ours does
	UID      string // may be empty; with it the suite sees that an object was made anew
	// Refusal says that it records a provider's refusal (LabelRefused), and stays when the peering is removed.
	Refusal bool
}

// Pod is a pod to put on a node.
type Pod struct {
	Name      string
	DaemonSet bool // owned by a DaemonSet: never evicted
	Protected bool // a disruption budget forbids its eviction
	Held      bool // a finalizer that nobody takes off keeps it, also after its end
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
