// Package events records the progress of steps as Kubernetes Events in the consumer cluster, with client-go's recorder.
//
// The involved object of an attempt's Events is the attempt's Node, identified by name as in the kubelet's Events. So
// Events can be recorded before the Node exists and after its deletion. The involved object of all other Events is the
// ConfigMap of the market.
//
// Events are best effort. A full queue drops new Events. The recorder sends at most a few requests per second to the
// API server. client-go limits a burst of Events about one object, and combines similar Events into one Event with a
// count.
package events

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
)

// Component is the source of the Events.
const Component = "liqo-autoscaler"

// These constants limit the requests to the API server: the rate per second, and the burst.
const (
	qps   = 5
	burst = 25
)

// These constants limit the Events about one object: the burst, and the rate per second after the burst.
const (
	objectBurst = 25
	objectQPS   = 1.0 / 60
)

// NewClient returns a client whose rate of requests is limited. The caller passes it to New.
func NewClient(access *rest.Config) (kubernetes.Interface, error) {
	access = rest.CopyConfig(access)
	access.QPS, access.Burst, access.RateLimiter = qps, burst, nil
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("open consumer cluster for events: %w", err)
	}
	return client, nil
}

// recorder implements activities.EventRecorder.
type recorder struct {
	record.EventRecorder
	market types.NamespacedName
}

// New returns a recorder that writes Events until ctx ends; Events that are queued at that time are lost. market is the
// ConfigMap of the market. If market is empty, the recorder drops Events that concern no node.
func New(ctx context.Context, client kubernetes.Interface, market types.NamespacedName) activities.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(record.CorrelatorOptions{
		BurstSize: objectBurst, QPS: objectQPS,
	}))
	broadcaster.StartRecordingToSink(once{&typed.EventSinkImpl{Interface: client.CoreV1().Events("")}})
	source := corev1.EventSource{Component: Component}
	return recorder{broadcaster.NewRecorder(runtime.NewScheme(), source), market}
}

// Record implements activities.EventRecorder. It does not block.
func (r recorder) Record(n activities.Event) {
	about := &corev1.ObjectReference{APIVersion: "v1"}
	switch {
	case n.Node != "": // the kubelet also uses the name as UID, and `kubectl describe node` searches for this UID
		about.Kind, about.Name, about.UID = kindNode, n.Node, types.UID(n.Node)
	case r.market.Namespace != "":
		about.Kind, about.Namespace, about.Name = "ConfigMap", r.market.Namespace, r.market.Name
	default:
		return
	}
	kind := corev1.EventTypeNormal
	if n.Reason.Warns() {
		kind = corev1.EventTypeWarning
	}
	r.Event(about, kind, string(n.Reason), n.Message)
}

const kindNode = "Node"

// once writes an Event about a Node only once, even if many workers record it repeatedly. It names the Event by Node
// and reason, so the API server refuses a second Event. Each reason occurs at most once in an attempt.
type once struct{ record.EventSink }

// Create implements record.EventSink.
func (o once) Create(e *corev1.Event) (*corev1.Event, error) {
	if e.InvolvedObject.Kind == kindNode {
		e.Name = e.InvolvedObject.Name + "." + strings.ToLower(e.Reason)
	}
	return o.EventSink.Create(e)
}

// Patch implements record.EventSink. client-go calls it to increase the count of a repeated Event. Patch ignores
// Events about a Node.
func (o once) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	if e.InvolvedObject.Kind == kindNode {
		return e, nil
	}
	return o.EventSink.Patch(e, data)
}
