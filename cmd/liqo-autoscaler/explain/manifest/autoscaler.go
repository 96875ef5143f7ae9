package manifest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
)

// provisioningRequest has the fields of Cluster Autoscaler's ProvisioningRequest that decide about nodes (CA
// apis/provisioningrequest/autoscaling.x-k8s.io/v1/types.go; v1beta1 has the same fields).
type provisioningRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		PodSets []struct {
			PodTemplateRef reference `json:"podTemplateRef"`
			Count          int32     `json:"count"`
		} `json:"podSets"`
		ProvisioningClassName string            `json:"provisioningClassName"`
		Parameters            map[string]string `json:"parameters"`
	} `json:"spec"`
}

// capacityBuffer has the fields of Cluster Autoscaler's CapacityBuffer that decide about nodes (CA
// apis/capacitybuffer/autoscaling.x-k8s.io/v1beta1/types.go).
type capacityBuffer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ProvisioningStrategy *string             `json:"provisioningStrategy"`
		PodTemplateRef       *reference          `json:"podTemplateRef"`
		ScalableRef          *reference          `json:"scalableRef"`
		Replicas             *int32              `json:"replicas"`
		Percentage           *int32              `json:"percentage"`
		Limits               corev1.ResourceList `json:"limits"`
	} `json:"spec"`
}

// reference names an object in the namespace of the referring object.
type reference struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

// These are the classes of a ProvisioningRequest that Cluster Autoscaler supports (CA
// provisioningrequest/supported_classes.go).
const (
	classAtomic = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
	classCheck  = "check-capacity.autoscaling.x-k8s.io"
)

// pods returns one pod for each pod set of the request. It marks the PodTemplates of the request as used.
func (r *provisioningRequest) pods(of key, all []object, used map[key]bool) (pods []explain.Planned, err error) {
	if len(r.Spec.PodSets) == 0 {
		return nil, fmt.Errorf("spec.podSets is empty: give podTemplateRef and count")
	}
	for n, set := range r.Spec.PodSets {
		field := fmt.Sprintf("spec.podSets[%d]", n)
		if set.Count < 1 {
			return nil, fmt.Errorf("%s.count is %d: give 1 or more", field, set.Count)
		}
		template, err := find(all, key{kindPodTemplate, of.namespace, set.PodTemplateRef.Name})
		if err != nil {
			return nil, fmt.Errorf("%s.podTemplateRef: %w", field, err)
		}
		used[template.key] = true
		pod, err := template.planned(fmt.Sprintf("%s, %s, %d x PodTemplate %s", of, field, set.Count, template.name),
			explain.InMemory)
		if err != nil {
			return nil, err
		}
		pod.Together, pod.Never = int(set.Count), never(r.Spec.ProvisioningClassName)
		pods = append(pods, pod)
	}
	return pods, nil
}

// never returns the reason for which Cluster Autoscaler adds no node for requests of the class, or "" if it adds
// nodes.
func never(class string) string {
	switch class {
	case classAtomic:
		return ""
	case classCheck:
		return "spec.provisioningClassName " + class + " only checks the nodes that exist: use " + classAtomic
	}
	return fmt.Sprintf("Cluster Autoscaler does not support the spec.provisioningClassName %q: use %s", class, classAtomic)
}

// pods returns the pod for which the buffer reserves capacity. It returns only one pod, even for several replicas. It
// marks the buffer's PodTemplate as used.
func (b *capacityBuffer) pods(of key, all []object, used map[key]bool) ([]explain.Planned, error) {
	field, target := "spec.podTemplateRef", key{kindPodTemplate, of.namespace, ""}
	switch template, scalable := b.Spec.PodTemplateRef, b.Spec.ScalableRef; {
	case (template == nil) == (scalable == nil):
		return nil, fmt.Errorf("give exactly one of spec.podTemplateRef and spec.scalableRef")
	case template != nil:
		target.name = template.Name
	default:
		field, target.kind, target.name = "spec.scalableRef", scalable.Kind, scalable.Name
	}
	from, err := find(all, target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	if from.kind == kindPodTemplate {
		used[from.key] = true
	}
	pod, err := from.planned(fmt.Sprintf("%s, %s %s %s", of, field, from.kind, from.name), explain.DryRun)
	return []explain.Planned{pod}, err
}

// find returns the object of the file with the wanted key. It returns an error if the file has no such object with a
// pod template.
func find(all []object, wanted key) (object, error) {
	for _, o := range all {
		if o.key == wanted && o.template() != nil {
			return o, nil
		}
	}
	return object{}, fmt.Errorf("the file does not contain %s: add it as a separate document", wanted)
}
