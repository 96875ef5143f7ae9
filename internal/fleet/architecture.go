package fleet

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// DefaultArchitecture is the value of the label kubernetes.io/arch that Liqo sets on every virtual node, even if the
// provider's nodes have another architecture (Liqo pkg/virtualKubelet/liqoNodeProvider/setup.go). A label of the
// VirtualNode overrides this value.
const DefaultArchitecture = "amd64"

// architectures lists the values of the label kubernetes.io/arch that offers may have. The values are Go's names of
// the architectures (GOARCH).
var architectures = []string{DefaultArchitecture, "arm64", "arm", "386", "ppc64le", "riscv64", "s390x"}

// Architectures returns the names of all architectures, the default first. The caller may change the slice.
func Architectures() []string { return slices.Clone(architectures) }

// Architecture returns the architecture of the group's nodes: the group's own label kubernetes.io/arch, or the default.
func (s *InstanceSpec) Architecture() string {
	return cmp.Or(s.Labels[corev1.LabelArchStable], DefaultArchitecture)
}

// Architecture returns the architecture of the provider's nodes: the offer's label kubernetes.io/arch. An empty
// result means that the architecture is not known. Then groups of any architecture may use the offer.
func (o *Offer) Architecture() string { return o.Labels[corev1.LabelArchStable] }
