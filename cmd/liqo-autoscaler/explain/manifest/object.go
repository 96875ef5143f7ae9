package manifest

import (
	"cmp"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
)

const kindPodTemplate = "PodTemplate"

// object is an object of the file.
type object struct {
	key
	is metav1.Object
}

// key names an object.
type key struct{ kind, namespace, name string }

func (k key) String() string { return k.kind + " " + k.namespace + "/" + k.name }

func name(o metav1.Object) string { return cmp.Or(o.GetName(), o.GetGenerateName()) }

func keyOf(kind string, o metav1.Object) key {
	return key{kind, cmp.Or(o.GetNamespace(), corev1.NamespaceDefault), name(o)}
}

// template returns the template of the object's pods, or nil for an object without a pod template.
func (o object) template() *corev1.PodTemplateSpec {
	switch is := o.is.(type) {
	case *corev1.Pod:
		return &corev1.PodTemplateSpec{ObjectMeta: is.ObjectMeta, Spec: is.Spec}
	case *corev1.PodTemplate:
		return &is.Template
	case *corev1.ReplicationController:
		return is.Spec.Template
	case *appsv1.DaemonSet:
		return &is.Spec.Template
	case *appsv1.Deployment:
		return &is.Spec.Template
	case *appsv1.ReplicaSet:
		return &is.Spec.Template
	case *appsv1.StatefulSet:
		return &is.Spec.Template
	case *batchv1.CronJob:
		return &is.Spec.JobTemplate.Spec.Template
	case *batchv1.Job:
		return &is.Spec.Template
	}
	return nil
}

// planned returns the pod that Cluster Autoscaler would see for the object's template, with the condition that the
// scheduler found it unschedulable.
func (o object) planned(of string, way explain.Way) (explain.Planned, error) {
	template := o.template()
	if template == nil || len(template.Spec.Containers) == 0 {
		return explain.Planned{}, errors.New("its pods have no containers: write spec.containers into the pod's spec")
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: *template.Spec.DeepCopy(),
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}}
	pod.Namespace, pod.Name, pod.DeletionTimestamp = o.namespace, o.name, nil
	if o.kind == "DaemonSet" {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: o.kind, Name: o.name, Controller: ptr.To(true)}}
	}
	if o.kind == "Pod" {
		of = ""
	}
	setDefaults(pod)
	if way == explain.Created {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, explain.LiqoToleration)
	}
	return explain.Planned{Pod: pod, Object: of, Way: way}, nil
}
