package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func newObject(provider string, labels, annotations map[string]string, now time.Time) (Object, error) {
	uid, err := newUID()
	return Object{UID: uid, Provider: provider, Labels: labels, Annotations: annotations, Created: now.UTC()}, err
}

// delete marks the object as terminating.
func (o *Object) delete(now time.Time) {
	if o.Deleting == nil {
		at := now.UTC()
		o.Deleting = &at
	}
}

// ourLabels are on every object of this hub.
func (b *Backend) ourLabels() map[string]string {
	return map[string]string{backend.LabelManagedBy: backend.ManagedBy, backend.LabelHub: b.opts.Hub}
}

// ours reports whether an object with these labels is this hub's; a Node has them as annotations.
func (b *Backend) ours(labels map[string]string) bool {
	return labels[backend.LabelManagedBy] == backend.ManagedBy && labels[backend.LabelHub] == b.opts.Hub
}

// attemptLabels are on every object of the attempt, on a Node as annotations.
func (b *Backend) attemptLabels(a fleet.Attempt) map[string]string {
	labels := b.ourLabels()
	labels[backend.LabelGroup] = a.Group
	labels[backend.LabelInstance] = a.Instance
	labels[backend.LabelAttempt] = strconv.Itoa(a.Number)
	return labels
}

// of reports whether an object with these labels is the attempt's.
func (b *Backend) of(labels map[string]string, a fleet.Attempt) bool {
	for key, value := range b.attemptLabels(a) {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// attemptOf reads the attempt back from the labels of one of its objects.
func (b *Backend) attemptOf(labels map[string]string) (fleet.Attempt, bool) {
	number, err := strconv.Atoi(labels[backend.LabelAttempt])
	if err != nil || !b.ours(labels) || labels[backend.LabelInstance] == "" {
		return fleet.Attempt{}, false
	}
	return fleet.Attempt{
		Group: labels[backend.LabelGroup], Instance: labels[backend.LabelInstance], Number: number,
	}, true
}

func bookingAnnotation(booking fleet.Booking) (map[string]string, error) {
	content, err := json.Marshal(booking)
	if err != nil {
		return nil, fmt.Errorf("write booking: %w", err)
	}
	return map[string]string{backend.AnnotationBooking: string(content)}, nil
}

func bookingOf(annotations map[string]string) *fleet.Booking {
	var booking fleet.Booking
	if json.Unmarshal([]byte(annotations[backend.AnnotationBooking]), &booking) != nil {
		return nil
	}
	return &booking
}

// newNode is the Node as the virtual kubelet of Liqo 1.2 registers it: with all labels and taints, not yet Ready
// (Liqo pkg/virtualKubelet/liqoNodeProvider/setup.go).
func (b *Backend) newNode(spec backend.NodeSpec, now time.Time) (*corev1.Node, error) {
	object, err := newObject(spec.Attempt.Provider.ID, nil, nil, now)
	if err != nil {
		return nil, err
	}
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
	node.Name, node.UID, node.Labels, node.Annotations = name, uidOf(object), labels, b.attemptLabels(spec.Attempt)
	node.CreationTimestamp = kubeTime(now)
	node.Spec.Taints = taints
	node.Status.Capacity, node.Status.Allocatable = spec.Shape.DeepCopy(), spec.Shape.DeepCopy()
	setCondition(node, corev1.ConditionFalse, "KubeletNotReady", now)
	return node, nil
}
