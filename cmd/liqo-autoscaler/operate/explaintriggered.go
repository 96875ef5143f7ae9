package operate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
)

// These constants limit the requests for events. If the cluster does not respond in time, the command continues
// without events.
const (
	eventsTimeout = 5 * time.Second
	eventsAtOnce  = 500
	eventsMost    = 20 * eventsAtOnce
)

// triggered adds the pods for which Cluster Autoscaler requested the instance. It reads events with the user's
// kubeconfig. A failed request becomes a note.
func triggered(ctx context.Context, kubeconfig string, i *explain.Instance) {
	events, err := func() ([]corev1.Event, error) {
		access, err := serve.Personal(kubeconfig)
		if err != nil {
			return nil, err
		}
		access.Timeout = eventsTimeout
		kube, err := kubernetes.NewForConfig(access)
		if err != nil {
			return nil, err
		}
		return triggers(ctx, kube)
	}()
	if err != nil {
		i.Notes = append(i.Notes,
			fmt.Sprintf("Cluster Autoscaler's events about pods for which it requested nodes: %v", err))
	}
	i.Triggered(events)
}

// triggers reads the events about scale-ups that Cluster Autoscaler has requested, in all namespaces. API servers keep
// events for an hour by default.
func triggers(ctx context.Context, kube kubernetes.Interface) (events []corev1.Event, err error) {
	options := metav1.ListOptions{Limit: eventsAtOnce,
		FieldSelector: fields.Set{"reason": explain.ReasonTriggered}.AsSelector().String()}
	for {
		list, err := kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return events, err
		}
		events = append(events, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return events, nil
		}
		if len(events) >= eventsMost {
			return events, fmt.Errorf("more than %d events exist, and only these were read", len(events))
		}
	}
}
