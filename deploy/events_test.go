package deploy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/events"
)

// showsEvents checks, with the worker's rights on a real API server, that Events are written. The API server accepts
// Events about the market's ConfigMap and about a Node that does not exist, and repeated Events are counted.
func showsEvents(t *testing.T, c *cluster, account string) {
	mayAll(t, c, account, map[string][]string{"writer": {namespace}, "events": {metav1.NamespaceDefault}})
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + account
	client, err := events.NewClient(config)
	require.NoError(t, err)
	shown := events.New(t.Context(), client, types.NamespacedName{Namespace: namespace, Name: marketName})
	failed := activities.Event{Reason: activities.ReasonPeeringFailed, Message: "Unreachable: provider milan"}
	ready := activities.Event{Reason: activities.ReasonNodeReady, Node: "lca-std-e-1-1",
		Message: "instance std-e-1 is Ready"}
	for range 2 {
		shown.Record(failed)
		shown.Record(ready)
	}
	about := func(in, kind, name string) func() (corev1.Event, error) {
		return func() (corev1.Event, error) {
			found, err := c.kube.CoreV1().Events(in).List(t.Context(), metav1.ListOptions{
				FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
			if err != nil || len(found.Items) != 1 {
				return corev1.Event{}, fmt.Errorf("%d Events about %s %s: %w", len(found.Items), kind, name, err)
			}
			return found.Items[0], nil
		}
	}
	until := func(n activities.Event, kind string, count int32, find func() (corev1.Event, error)) {
		testkit.Until(t, 2*time.Minute, "Event about the "+kind, func() error {
			e, err := find()
			if err == nil && (e.Count != count || e.Reason != string(n.Reason) || e.Message != n.Message) {
				err = fmt.Errorf("got %d times %s: %s", e.Count, e.Reason, e.Message)
			}
			return err
		})
	}
	until(failed, "ConfigMap", 2, about(namespace, "ConfigMap", marketName))
	until(ready, "Node", 1, about(metav1.NamespaceDefault, "Node", ready.Node))
}
