package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
)

// podsRead is the maximum number of pending pods that are examined.
const podsRead = 500

// rejected reports pods that tolerate the taint of virtual nodes although their namespace is not offloaded. Cluster
// Autoscaler may add nodes for these pods, but Liqo rejects them permanently.
func (r *Report) rejected(ctx context.Context, c *cluster) {
	if len(c.nodes) == 0 {
		return
	}
	pending, err := c.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "status.phase=Pending", Limit: podsRead})
	if r.skipped("pending pods", err) {
		return
	}
	namespaces := map[string]int{}
	for n := range pending.Items {
		if verdict, _ := boundpod.Of(&pending.Items[n], nil); verdict == boundpod.NotOffloaded {
			namespaces[pending.Items[n].Namespace]++
		}
	}
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		counts = append(counts, fmt.Sprintf("%d in namespace %s", namespaces[name], name))
	}
	if len(counts) > 0 {
		r.add("pods-rejected", "virtual nodes", "Liqo rejects pods permanently: %s", strings.Join(counts, ", "))
	}
}
