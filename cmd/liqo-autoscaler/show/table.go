package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
)

// shown contains the resources that every table shows.
var shown = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Resources renders all resources of a list on one line.
func Resources(list corev1.ResourceList) string { return resources(output.Style{Wide: true}, list) }

// resources renders a list as cpu=8,memory=16Gi, followed by the other resources.
func resources(style output.Style, list corev1.ResourceList) string {
	var parts []string
	seen := map[corev1.ResourceName]bool{}
	add := func(name corev1.ResourceName) {
		if q, ok := list[name]; ok && !seen[name] {
			seen[name] = true
			parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
		}
	}
	for _, name := range shown {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		plain := name == corev1.ResourcePods || name == corev1.ResourceEphemeralStorage
		if style.Wide || !plain {
			add(name)
		}
	}
	return cmp.Or(strings.Join(parts, ","), output.None)
}
