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

// sliceResource is Liqo's resource ResourceSlice. This package has its own type for it, because only
// activities/backend/liqo imports Liqo.
var sliceResource = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1",
	Resource: "resourceslices"}

// These constants are the labels that liqo-autoscaler sets on a slice. They mark the slice as a hold and name the hub
// that holds it. Liqo copies them to the provider with the slice.
const (
	labelOurs = "liqo-autoscaler.io/managed-by"
	ours      = "liqo-autoscaler"
	labelHub  = "liqo-autoscaler.io/hub"
)

// Holder identifies one hub of a consumer cluster. An offer to the hub includes the amounts of the slices that the
// hub already has, because the hub subtracts them itself.
type Holder struct{ Consumer, Hub string }

// Slice has the fields of a ResourceSlice that the agent reads. The agent does not trust them: Liqo's ClusterRole
// liqo-remote-controlplane permits the consumer to write all fields, including the status and the labels.
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
	// Owner is the consumer whose Tenant is in the slice's namespace, or "" when the slice does not request capacity of
	// this cluster.
	Owner string `json:"-"`
	// Booked contains the slice's amounts in the record of grants, or nil if the record has no entry.
	Booked corev1.ResourceList `json:"-"`
	// Recorded is true when the agent keeps a record of grants. A slice of the agent's own class (Class) then has a
	// grant only if the record has an entry for the slice.
	Recorded bool `json:"-"`
	// unreadable is true when the requested amounts cannot be used, because the schema of ResourceSlices does not
	// check them; see readable.
	unreadable bool
}

type sliceCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// These constants are the conditions of a slice, and values of these conditions.
const (
	conditionAuthentication = "Authentication"
	conditionResources      = "Resources"
	accepted                = "Accepted"
	denied                  = "Denied"
)

// condition returns the value of the slice's condition with this type. It returns "" when the slice has no such
// condition.
func (s Slice) condition(of string) string {
	for _, c := range s.Status.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return ""
}

// Incoming reports whether the slice requests capacity of this cluster. Other slices request capacity of other
// clusters.
func (s Slice) Incoming() bool { return s.Owner != "" }

// holder returns the consumer whose share is reduced by the slice's granted amounts. If the slice has no owner, it
// returns the slice's namespace.
func (s Slice) holder() string { return cmp.Or(s.Owner, s.Namespace) }

// Granted returns the slice's granted amounts. For a slice of Class they are the amounts in the record. For a slice
// of another class they are the amounts in the status. If a slice of another class has an entry in the record,
// because it changed its class after the grant, the larger amounts count.
func (s Slice) Granted() corev1.ResourceList {
	switch {
	case s.Spec.Class == Class && (s.Recorded || s.Booked != nil):
		return s.Booked
	case s.Booked == nil:
		return s.claimed()
	}
	granted := s.Booked.DeepCopy()
	raise(granted, s.claimed())
	return granted
}

// claimed returns the granted amounts in the slice's status. If a slice of Liqo's own class has no answer yet,
// claimed returns the requested amounts, because Liqo grants exactly these.
func (s Slice) claimed() corev1.ResourceList {
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

// forged reports whether the slice's status shows a grant that is not in the record.
func (s Slice) forged() bool {
	return s.Recorded && s.Spec.Class == Class && s.Booked == nil && s.Incoming() &&
		s.condition(conditionResources) == accepted
}

func (s Slice) heldBy(h Holder) bool {
	return h.Consumer != "" && s.Owner == h.Consumer && s.Labels[labelOurs] == ours && s.Labels[labelHub] == h.Hub
}

// sliceOf converts an object to a Slice. It drops amounts that are not readable. If these are the requested amounts,
// it marks the slice as unreadable.
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
	if err != nil { // the schema of ResourceSlices excludes this
		s = Slice{unreadable: true}
		s.Name, s.Namespace, s.UID = object.GetName(), object.GetNamespace(), object.GetUID()
	}
	return s
}

// settle sets the field Owner of each slice. It also sets the field Booked to the slice's amounts in the record. The
// parameter record is nil if the agent grants no slices.
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

// maxResources bounds the number of resources in a slice.
const maxResources = 64

// readable reports whether the amounts can be parsed and are small enough to compute with. A computation with
// 1e100000000 would take minutes.
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
