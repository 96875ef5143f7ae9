// Package events records the progress of steps as Kubernetes Events in the consumer cluster, with client-go's recorder.
//
// An attempt's Events concern its Node, by name, as the kubelet's Events do: from before the Node exists until after it
// is gone. All other Events concern the ConfigMap of the market.
//
// Events are best effort and bounded. A full queue drops them. The API server receives a few requests a second. A burst
// of Events about one object is cut, and similar Events are counted in one.
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

// Requests to the API server: the rate a second, and the burst.
const (
	qps   = 5
	burst = 25
)

// Events about one object: the burst, and the rate a second after that.
const (
	objectBurst = 25
	objectQPS   = 1.0 / 60
)

// NewClient makes a client for New, with a bound on the requests.
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

// New returns a recorder that writes Events until ctx ends; Events that are still queued then are lost. market is the
// ConfigMap of the market. Without it, Events that concern no node are dropped.
func New(ctx context.Context, client kubernetes.Interface, market types.NamespacedName) activities.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(record.CorrelatorOptions{
		BurstSize: objectBurst, QPS: objectQPS,
	}))
	broadcaster.StartRecordingToSink(once{&typed.EventSinkImpl{Interface: client.CoreV1().Events("")}})
	source := corev1.EventSource{Component: Component}
	return recorder{broadcaster.NewRecorder(runtime.NewScheme(), source), market}
}

// Record implements activities.EventRecorder.
func (r recorder) Record(n activities.Event) {
	about := &corev1.ObjectReference{APIVersion: "v1"}
	switch {
	case n.Node != "": // by name, as the kubelet does, so that `kubectl describe node` finds it
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

// once writes an Event about a Node only once, though many workers may record it repeatedly. The Event's name consists
// of Node and reason, and each reason occurs at most once in an attempt.
type once struct{ record.EventSink }

// Create implements record.EventSink.
func (o once) Create(e *corev1.Event) (*corev1.Event, error) {
	if e.InvolvedObject.Kind == kindNode {
		e.Name = e.InvolvedObject.Name + "." + strings.ToLower(e.Reason)
	}
	return o.EventSink.Create(e)
}

// Patch implements record.EventSink: it raises the count of a repeated Event.
func (o once) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	if e.InvolvedObject.Kind == kindNode {
		return e, nil
	}
	return o.EventSink.Patch(e, data)
}
