package fleet

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// DefaultArchitecture is the architecture that Liqo writes on every virtual node, independent of the provider's nodes
// (Liqo pkg/virtualKubelet/liqoNodeProvider/setup.go). A label of the VirtualNode replaces it.
const DefaultArchitecture = "amd64"

// architectures lists the values of the label kubernetes.io/arch that offers may have. They are the names that Go uses.
var architectures = []string{DefaultArchitecture, "arm64", "arm", "386", "ppc64le", "riscv64", "s390x"}

// Architectures returns the names of all architectures, the default first. The caller may change the slice.
func Architectures() []string { return slices.Clone(architectures) }

// Architecture returns the architecture of the group's nodes: the group's own label kubernetes.io/arch, or the default.
func (s *InstanceSpec) Architecture() string {
	return cmp.Or(s.Labels[corev1.LabelArchStable], DefaultArchitecture)
}

// Architecture returns the architecture of the provider's nodes: the offer's label kubernetes.io/arch. An empty result
// means that it is not known; such an offer serves groups of any architecture.
func (o *Offer) Architecture() string { return o.Labels[corev1.LabelArchStable] }
