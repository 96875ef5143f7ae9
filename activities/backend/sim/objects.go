package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func newObject(provider string, labels, annotations map[string]string, now time.Time) Object {
	return Object{UID: newUID(), Provider: provider, Labels: labels, Annotations: annotations, Created: now.UTC()}
}

// delete marks the object as terminating.
func (o *Object) delete(now time.Time) {
	if o.Deleting == nil {
		at := now.UTC()
		o.Deleting = &at
	}
}

// ourLabels returns the labels of every object of this hub.
func (b *Backend) ourLabels() map[string]string { return backend.Ours(b.opts.Hub) }

// ours reports whether an object with these labels belongs to this hub. For a Node, pass its annotations.
func (b *Backend) ours(labels map[string]string) bool {
	return backend.Carries(labels, b.ourLabels())
}

// attemptLabels returns the labels of every object of the attempt. A Node has them as annotations.
func (b *Backend) attemptLabels(a fleet.Attempt) map[string]string {
	return backend.TagsOf(a, b.ourLabels())
}

// of reports whether an object with these labels belongs to the attempt.
func (b *Backend) of(labels map[string]string, a fleet.Attempt) bool {
	return backend.Carries(labels, b.attemptLabels(a))
}

// attemptOf reads the attempt from the labels of one of its objects.
func (b *Backend) attemptOf(labels map[string]string) (fleet.Attempt, bool) {
	a, ok := backend.AttemptOf(labels)
	return a, ok && a.Instance != "" && b.ours(labels)
}

func bookingAnnotation(booking fleet.Booking) (map[string]string, error) {
	content, err := json.Marshal(booking)
	if err != nil {
		return nil, fmt.Errorf("write booking: %w", err)
	}
	return map[string]string{backend.AnnotationBooking: string(content)}, nil
}

// newNode returns the Node as the virtual kubelet of Liqo 1.2 registers it: with all labels and taints, not yet Ready
// (Liqo pkg/virtualKubelet/liqoNodeProvider/setup.go).
func (b *Backend) newNode(spec backend.NodeSpec, now time.Time) *corev1.Node {
	name := spec.Attempt.ObjectName()
	labels := map[string]string{
		"kubernetes.io/hostname": name,
		"kubernetes.io/role":     "agent",
		"kubernetes.io/os":       "linux",
		"kubernetes.io/arch":     "amd64",

		"liqo.io/type":              "virtual-node",
		"liqo.io/remote-cluster-id": spec.Attempt.Provider.ID,
		"storage.liqo.io/available": "false",

		"node.kubernetes.io/exclude-from-external-load-balancers": "true",
		"alpha.service-controller.kubernetes.io/exclude-balancer": "true",
	}
	maps.Copy(labels, spec.Labels)
	labels[backend.LabelGroup] = spec.Attempt.Group
	taints := append([]corev1.Taint{{
		Key: "virtual-node.liqo.io/not-allowed", Value: "true", Effect: corev1.TaintEffectNoExecute,
	}}, spec.Taints...)

	node := &corev1.Node{}
	node.Name, node.UID = name, types.UID(newUID())
	node.Labels, node.Annotations = labels, b.attemptLabels(spec.Attempt)
	maps.Copy(node.Annotations, spec.Price())
	node.CreationTimestamp = kubeTime(now)
	node.Spec.Taints = taints
	node.Status.Capacity, node.Status.Allocatable = spec.Shape.DeepCopy(), spec.Shape.DeepCopy()
	setCondition(node, corev1.ConditionFalse, "KubeletNotReady", now)
	return node
}
