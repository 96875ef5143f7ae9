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
	RemoteSlices map[string]*RemoteSlice // the providers' sides, see remoteKey
	Consumer     Consumer
}

// remoteKey is the key of a provider's slice.
func remoteKey(provider, name string) string { return provider + "/" + name }

// Delays are how long a verb takes when nothing is wrong; each is spread evenly over the verb's stages.
type Delays struct {
	Peer   time.Duration `json:"peer"`
	Join   time.Duration `json:"join"`
	Leave  time.Duration `json:"leave"`
	Unpeer time.Duration `json:"unpeer"`
	// Register is how long a virtual kubelet takes to register its Node again when somebody has deleted it.
	Register time.Duration `json:"register,omitempty"`
}

// Provider is a provider cluster. Its knobs are what is wrong with it.
type Provider struct {
	ID string `json:"id"`
	// Capacity bounds the sum of granted slices; a resource it does not name is not bounded.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	Knobs    Knobs               `json:"knobs"`
	Tenant   *Object             `json:"tenant,omitempty"`
	// Condition is what the Tenant is set to: cordoned or drained; empty is active.
	Condition fleet.RefusingKind `json:"condition,omitempty"`
}

// Knobs are the faults of a provider. The zero value is a healthy one.
type Knobs struct {
	// Unreachable: no connection, neither ours nor the consumer cluster's.
	Unreachable bool `json:"unreachable,omitempty"`
	// Unauthorized: it does not accept our credentials; what the consumer's Liqo does there goes on.
	Unauthorized bool `json:"unauthorized,omitempty"`
	// Hang is a stage that is not reached while it is set here.
	Hang backend.Stage `json:"hang,omitempty"`
	// Refuse is a stage of Establish or Join that the provider says no to, with Message for its words.
	Refuse  backend.Stage `json:"refuse,omitempty"`
	Message string        `json:"message,omitempty"`
}

// Consumer is the cluster with the Cluster Autoscaler. Peerings are keyed by provider id, the others by name, Kubelets
// by that of their virtual node and Pods by the Node they run on.
type Consumer struct {
	Peerings map[string]*Peering
	Refused  map[string]*Refused // by provider id
	Slices   map[string]*Slice
	Virtuals map[string]*Object
	Kubelets map[string]*Kubelet
	Nodes    map[string]*corev1.Node
	Pods     map[string][]Pod
}

// Object is what all objects have. Deleting is set while it is terminating.
type Object struct {
	UID         string            `json:"uid"`
	Provider    string            `json:"provider"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Created     time.Time         `json:"created"`
	Deleting    *time.Time        `json:"deleting,omitempty"`
}

// Track is how far an object has come: the stage it is in since when, and whether that is reached.
type Track struct {
	Stage   backend.Stage `json:"stage,omitempty"`
	Since   time.Time     `json:"since"`
	Reached bool          `json:"reached,omitempty"`
}

// Peering is the consumer's side of a peering.
type Peering struct {
	Object
	Track
	// BothWays: the provider consumes from us too.
	BothWays bool `json:"bothWays,omitempty"`
}

// Slice is the consumer's side of a slice.
type Slice struct {
	Object
	Track
	Asked corev1.ResourceList `json:"asked,omitempty"`
}

// RemoteSlice is the provider's side of a slice.
type RemoteSlice struct {
	Object
	Granted corev1.ResourceList `json:"granted,omitempty"`
}

// Pod is a pod on a Node of the consumer.
type Pod struct {
	Name      string `json:"name"`
	DaemonSet bool   `json:"daemonSet,omitempty"` // never evicted
	Protected bool   `json:"protected,omitempty"` // a disruption budget forbids its eviction
	Held      bool   `json:"held,omitempty"`      // a finalizer keeps it also after its end
}

// fill makes the maps of a new State, so that nobody meets a nil one.
func (s *State) fill() {
	for _, k := range kinds {
		k.make(s)
	}
}
