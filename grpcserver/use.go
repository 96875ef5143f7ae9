package grpcserver

import (
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits bounds the resources of the counted instances of all groups together. A field that is nil means no bound.
// CA's own flags --cores-total and --memory-total bound virtual nodes together with all other nodes.
type Limits struct {
	Nodes  *int               `json:"nodes,omitempty"`
	CPU    *resource.Quantity `json:"cpu,omitempty"`
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Any reports whether any bound is set.
func (l Limits) Any() bool { return l.Nodes != nil || l.CPU != nil || l.Memory != nil }

// Use is the sum of the resources of counted instances, which is compared with Limits.
type Use struct {
	Nodes       int
	CPU, Memory resource.Quantity
}

// Add adds n instances of a shape.
func (u *Use) Add(n int, shape corev1.ResourceList) {
	u.Nodes += n
	u.CPU.Add(multiple(n, shape[corev1.ResourceCPU]))
	u.Memory.Add(multiple(n, shape[corev1.ResourceMemory]))
}

func multiple(n int, q resource.Quantity) resource.Quantity {
	q = q.DeepCopy()
	q.Mul(int64(n))
	return q
}

// Over returns a text about the first limit that n more instances of a shape would exceed. It returns "" if they
// would exceed no limit.
func (l Limits) Over(now Use, n int, shape corev1.ResourceList) string {
	var more Use
	more.Add(n, shape)
	if l.Nodes != nil && now.Nodes+more.Nodes > *l.Nodes {
		return fmt.Sprintf("limits.nodes is %d, %d exist and %d more are requested", *l.Nodes, now.Nodes, more.Nodes)
	}
	if why := exceeded("cpu", l.CPU, now.CPU, more.CPU); why != "" {
		return why
	}
	return exceeded("memory", l.Memory, now.Memory, more.Memory)
}

func exceeded(name string, limit *resource.Quantity, now, more resource.Quantity) string {
	if limit == nil {
		return ""
	}
	sum := now.DeepCopy()
	sum.Add(more)
	if sum.Cmp(*limit) <= 0 {
		return ""
	}
	return fmt.Sprintf("limits.%s is %s, %s is in use and %s more is requested", name, limit.String(), now.String(),
		more.String())
}

// Room returns how many more instances of a shape the limits permit. The result is at most atMost, and at least 0.
func (l Limits) Room(now Use, atMost int, shape corev1.ResourceList) int {
	return sort.Search(max(atMost, 0), func(n int) bool { return l.Over(now, n+1, shape) != "" })
}
