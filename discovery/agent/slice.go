package agent

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// sliceResource is Liqo's ResourceSlice. Its types are not imported: only activities/backend/liqo knows Liqo.
var sliceResource = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1",
	Resource: "resourceslices"}

// Labels of a slice that a consumer has sent: Liqo's says which consumer it is, those of liqo-autoscaler, which are
// copied with it, that it is a hold and of which installation.
const (
	labelOrigin = "liqo.io/originID"
	labelOurs   = "liqo-autoscaler.io/managed-by"
	ours        = "liqo-autoscaler"
	labelHub    = "liqo-autoscaler.io/hub"
)

// Holder is one installation of liqo-autoscaler in a consumer cluster: it subtracts its own slices from an offer.
type Holder struct{ Consumer, Hub string }

// Slice is a ResourceSlice as far as it matters here.
type Slice struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Class     string              `json:"class"`
		Resources corev1.ResourceList `json:"resources"`
	} `json:"spec"`
	Status struct {
		Resources  corev1.ResourceList `json:"resources"`
		Conditions []sliceCondition    `json:"conditions"`
	} `json:"status"`
	// unreadable: what it asks for is no amounts, which the schema of ResourceSlices cannot tell.
	unreadable bool
}

type sliceCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// The conditions of a slice, and their values.
const (
	conditionAuthentication = "Authentication"
	conditionResources      = "Resources"
	accepted                = "Accepted"
	denied                  = "Denied"
)

// condition is the value of the condition; "" when it is absent.
func (s Slice) condition(of string) string {
	for _, c := range s.Status.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return ""
}

// Incoming reports whether the slice takes from this cluster; the others are what it has asked for elsewhere.
func (s Slice) Incoming() bool { return s.Labels[labelOrigin] != "" }

// Granted is what the slice was given here. One of Liqo's own class counts with what it asks for before its answer,
// because it is given just that.
func (s Slice) Granted() corev1.ResourceList {
	if !s.Incoming() {
		return nil
	}
	switch answer := s.condition(conditionResources); {
	case answer == accepted:
		return s.Status.Resources
	case answer == "" && (s.Spec.Class == "" || s.Spec.Class == "default"):
		return s.Spec.Resources
	}
	return nil
}

func (s Slice) heldBy(h Holder) bool {
	return s.Labels[labelOrigin] == h.Consumer && s.Labels[labelOurs] == ours && s.Labels[labelHub] == h.Hub
}

// sliceOf reads a slice. What a consumer asks for may be anything, and is nothing where it cannot be read; what was
// granted must be readable.
func sliceOf(object *unstructured.Unstructured) (s Slice, err error) {
	fields := object.Object
	if spec, ok := fields["spec"].(map[string]any); ok && !readable(spec["resources"]) {
		spec, fields = maps.Clone(spec), maps.Clone(fields)
		delete(spec, "resources")
		fields["spec"], s.unreadable = spec, true
	}
	raw, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read ResourceSlice %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return s, nil
}

// readable reports whether the amounts can be read, and computed with in no time: 1e100000000 takes minutes.
func readable(amounts any) bool {
	named, ok := amounts.(map[string]any)
	for _, amount := range named {
		if _, err := strictyaml.Quantity(fmt.Sprint(amount)); err != nil {
			return false
		}
	}
	return ok || amounts == nil
}
