package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// sliceResource is Liqo's ResourceSlice. Its types are not imported: only activities/backend/liqo knows Liqo.
var sliceResource = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1",
	Resource: "resourceslices"}

// Labels of a slice that a consumer has sent. Those of liqo-autoscaler, which Liqo copies with it, say that it is a
// hold, and of which installation.
const (
	labelOurs = "liqo-autoscaler.io/managed-by"
	ours      = "liqo-autoscaler"
	labelHub  = "liqo-autoscaler.io/hub"
)

// Holder is one installation of liqo-autoscaler in a consumer cluster: it subtracts its own slices from an offer.
type Holder struct{ Consumer, Hub string }

// Slice is a ResourceSlice as far as it matters here. All of it may be the consumer's own writing, status and labels
// included: Liqo's ClusterRole liqo-remote-controlplane grants that.
type Slice struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Consumer  string              `json:"consumerClusterID"`
		Class     string              `json:"class"`
		Resources corev1.ResourceList `json:"resources"`
	} `json:"spec"`
	Status struct {
		Resources  corev1.ResourceList `json:"resources"`
		Conditions []sliceCondition    `json:"conditions"`
	} `json:"status"`
	// Owner is the consumer whose Tenant is in the slice's namespace; "" when the slice takes nothing from this cluster.
	Owner string `json:"-"`
	// Booked is the amount that the record of grants has for the slice; nil when it has none.
	Booked corev1.ResourceList `json:"-"`
	// Recorded says that there is a record of grants, so that a slice of Class without an entry was granted nothing.
	Recorded bool `json:"-"`
	// unreadable says that the requested amounts are none, which the schema of ResourceSlices does not check.
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

// Incoming reports whether the slice takes from this cluster. The other slices are requests of this cluster elsewhere.
func (s Slice) Incoming() bool { return s.Owner != "" }

// holder returns the consumer that the slice is charged to: of a slice whose Tenant is gone, the namespace.
func (s Slice) holder() string { return cmp.Or(s.Owner, s.Namespace) }

// Granted returns the amount that the slice was granted here: of Class what the record has, and of another class what
// the slice says. One that changed its class after a grant counts with the larger amounts.
func (s Slice) Granted() corev1.ResourceList {
	switch {
	case s.Spec.Class == Class && (s.Recorded || s.Booked != nil):
		return s.Booked
	case s.Booked == nil:
		return s.said()
	}
	granted := s.Booked.DeepCopy()
	raise(granted, s.said())
	return granted
}

// said returns the amount that the slice says it was granted. A slice of Liqo's own class counts with its requests
// before it has an answer, because Liqo grants just that.
func (s Slice) said() corev1.ResourceList {
	answer := s.condition(conditionResources)
	switch {
	case !s.Incoming():
		return nil
	case answer == accepted:
		return s.Status.Resources
	case answer == "" && (s.Spec.Class == "" || s.Spec.Class == "default"):
		return s.Spec.Resources
	}
	return nil
}

// forged reports whether the slice says that it was granted, and no agent has granted it.
func (s Slice) forged() bool {
	return s.Recorded && s.Spec.Class == Class && s.Booked == nil && s.Incoming() &&
		s.condition(conditionResources) == accepted
}

func (s Slice) heldBy(h Holder) bool {
	return h.Consumer != "" && s.Owner == h.Consumer && s.Labels[labelOurs] == ours && s.Labels[labelHub] == h.Hub
}

// sliceOf reads a slice. Amounts that cannot be read are none: requested ones make the slice unreadable, granted ones
// count as the record has them.
func sliceOf(object *unstructured.Unstructured) (s Slice) {
	fields := maps.Clone(object.Object)
	for _, part := range []string{"spec", "status"} {
		of, ok := fields[part].(map[string]any)
		if !ok || readable(of["resources"]) {
			continue
		}
		of = maps.Clone(of)
		delete(of, "resources")
		fields[part] = of
		s.unreadable = s.unreadable || part == "spec"
	}
	raw, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil { // which the schema of ResourceSlices excludes
		s = Slice{unreadable: true}
		s.Name, s.Namespace, s.UID = object.GetName(), object.GetNamespace(), object.GetUID()
	}
	return s
}

// settle says of each slice whose it is and what the record has for it. A nil record means that nobody keeps one.
func settle(all []Slice, tenants map[string]Tenant, record map[types.UID]grant) {
	for n := range all {
		s := &all[n]
		s.Owner, s.Booked, s.Recorded = "", nil, record != nil
		if tenant, ok := tenants[s.Namespace]; ok && tenant.ClusterID == s.Spec.Consumer {
			s.Owner = tenant.ClusterID
		}
		if booked, ok := record[s.UID]; ok {
			s.Booked = booked.Resources
		}
	}
}

// maxResources is how many resources a slice may name.
const maxResources = 64

// readable reports whether the amounts can be read, and computed with in no time: 1e100000000 takes minutes.
func readable(amounts any) bool {
	named, ok := amounts.(map[string]any)
	if len(named) > maxResources {
		return false
	}
	for _, amount := range named {
		if _, err := strictyaml.Quantity(fmt.Sprint(amount)); err != nil {
			return false
		}
	}
	return ok || amounts == nil
}
