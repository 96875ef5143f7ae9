package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// State is the whole world.
type State struct {
	World        string // random, made with the file
	Revision     int64  // rises by one with each change
	Delays       Delays
	Providers    map[string]*Provider
	RemoteSlices map[string]*RemoteSlice // the slices on the providers, see remoteKey
	Consumer     Consumer
}

// remoteKey returns the key in State.RemoteSlices of a provider's slice.
func remoteKey(provider, name string) string { return provider + "/" + name }

// Delays contains the duration of each verb without faults. The stages of a verb take equal parts of its duration.
type Delays struct {
	Peer   time.Duration `json:"peer"`
	Join   time.Duration `json:"join"`
	Leave  time.Duration `json:"leave"`
	Unpeer time.Duration `json:"unpeer"`
	// Register is the time until a virtual kubelet registers its deleted Node again.
	Register time.Duration `json:"register,omitempty"`
}

// Provider is a provider cluster with its configured faults.
type Provider struct {
	ID string `json:"id"`
	// Capacity is the limit on the sum of the granted slices. A resource without an entry has no limit.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	Knobs    Knobs               `json:"knobs"`
	Tenant   *Object             `json:"tenant,omitempty"`
	// Condition is the condition of the Tenant: cordoned or drained; empty means active.
	Condition fleet.RefusingKind `json:"condition,omitempty"`
}

// Knobs contains the faults of a provider. The zero value means a healthy provider.
type Knobs struct {
	// Unreachable breaks every connection to the provider, from us and from the consumer cluster.
	Unreachable bool `json:"unreachable,omitempty"`
	// Unauthorized makes the provider reject our credentials. The consumer's Liqo still has access to the provider.
	Unauthorized bool `json:"unauthorized,omitempty"`
	// Hang names a stage that is not reached while Hang is set.
	Hang backend.Stage `json:"hang,omitempty"`
	// Refuse names a stage of Establish or Join that the provider refuses. Message is the text of the refusal.
	Refuse  backend.Stage `json:"refuse,omitempty"`
	Message string        `json:"message,omitempty"`
}

// Consumer is the cluster with the Cluster Autoscaler. Peerings are keyed by provider id, Kubelets by their virtual
// node, Pods by their Node, and all other objects by name.
type Consumer struct {
	Peerings map[string]*Peering
	Refused  map[string]*Refused // by provider id
	Slices   map[string]*Slice
	Virtuals map[string]*Object
	Kubelets map[string]*Kubelet
	Nodes    map[string]*corev1.Node
	Pods     map[string][]Pod
}

// Object contains the fields that all objects have. Deleting is set while the object is terminating.
type Object struct {
	UID         string            `json:"uid"`
	Provider    string            `json:"provider"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Created     time.Time         `json:"created"`
	Deleting    *time.Time        `json:"deleting,omitempty"`
}

// Track is the progress of an object: its stage, the start of the stage, and whether the stage is reached.
type Track struct {
	Stage   backend.Stage `json:"stage,omitempty"`
	Since   time.Time     `json:"since"`
	Reached bool          `json:"reached,omitempty"`
}

// Peering is the consumer's part of a peering.
type Peering struct {
	Object
	Track
	// BothWays means that the provider is also a consumer of this cluster's capacity.
	BothWays bool `json:"bothWays,omitempty"`
}

// Slice is a slice on the consumer.
type Slice struct {
	Object
	Track
	Asked corev1.ResourceList `json:"asked,omitempty"`
}

// RemoteSlice is the provider's copy of a slice.
type RemoteSlice struct {
	Object
	Granted corev1.ResourceList `json:"granted,omitempty"`
}

// Pod is a pod on a Node of the consumer.
type Pod struct {
	Name      string `json:"name"`
	DaemonSet bool   `json:"daemonSet,omitempty"` // never evicted
	Protected bool   `json:"protected,omitempty"` // a disruption budget forbids its eviction
	Held      bool   `json:"held,omitempty"`      // a finalizer keeps the object after the pod has ended
}

// fill makes the maps of a new State, so that no map is nil.
func (s *State) fill() {
	for _, k := range kinds {
		k.make(s)
	}
}
