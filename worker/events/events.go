// Package notices shows what steps do as Kubernetes Events in the consumer cluster, with client-go's recorder.
//
// An attempt's Events are about its Node, by name, as the kubelet's are: from before the Node exists until after it is
// gone. All others are about the ConfigMap of the market.
//
// They are best effort and bounded: a queue that is full drops them; the API server gets a few requests a second, and a
// burst about one object is cut, and added up where it is alike.
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

// Component is who Events are from.
const Component = "liqo-autoscaler"

// Requests to the API server: a second, and at once.
const (
	qps   = 5
	burst = 25
)

// Events about one object: at once, and a second after that.
const (
	objectBurst = 25
	objectQPS   = 1.0 / 60
)

// NewClient makes a client for New, which bounds the requests.
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

// New writes Events until ctx ends; those that wait then are lost. market is the ConfigMap of the market; without one
// nothing is shown that is about no node.
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
	case n.Node != "": // by its name, the kubelet's way, with which `kubectl describe node` finds it
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

// once writes an Event about a Node only once, however often it is told, and by however many workers: it is named after
// Node and reason, which no attempt meets twice.
type once struct{ record.EventSink }

// Create implements record.EventSink.
func (o once) Create(e *corev1.Event) (*corev1.Event, error) {
	if e.InvolvedObject.Kind == kindNode {
		e.Name = e.InvolvedObject.Name + "." + strings.ToLower(e.Reason)
	}
	return o.EventSink.Create(e)
}

// Patch implements record.EventSink: it counts up what happened again.
func (o once) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	if e.InvolvedObject.Kind == kindNode {
		return e, nil
	}
	return o.EventSink.Patch(e, data)
}
