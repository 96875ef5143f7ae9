package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/events"
)

// events waits until the consumer has our Events with these reasons about the Node, each once, and logs them.
func (r *run) events(ctx context.Context, node string, reasons ...activities.Reason) {
	r.t.Helper()
	selector := "involvedObject.kind=Node,involvedObject.name=" + node + ",source=" + events.Component
	r.until(ctx, "events of the node", time.Minute, func(ctx context.Context) error {
		found, err := r.s.consumer.kube.CoreV1().Events(metav1.NamespaceDefault).List(ctx,
			metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return err
		}
		var of []activities.Reason
		for _, e := range found.Items {
			of = append(of, activities.Reason(e.Reason))
		}
		for _, reason := range reasons {
			if !slices.Contains(of, reason) {
				return fmt.Errorf("no event %s about node %s: %v", reason, node, of)
			}
		}
		if len(of) != len(reasons) {
			return fmt.Errorf("more events than %v about node %s: %v", reasons, node, of)
		}
		return nil
	})
	out := r.s.tool(ctx, r.s.admin(lab.Consumer), nil, "kubectl", "get", "events", "--namespace",
		metav1.NamespaceDefault, "--field-selector", selector)
	r.t.Logf("kubectl get events:\n%s", out)
}
