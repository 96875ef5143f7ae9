package deploy_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func liqoResource(name string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: name}
}

func liqoObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.liqo.io/v1beta1", "kind": kind,
		"spec": spec}}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// noRoomIsGrantedTwice requests 110 slices of one CPU concurrently: 50 for each of two consumers, and 10 for a third
// consumer, which has no offer. The cluster has capacity for 60 slices. The agent must grant 60 slices and deny the
// other slices. When some slices have an answer, it calls the function restart.
func (c *cluster) noRoomIsGrantedTwice(t *testing.T, restart func()) {
	objects, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	for _, consumer := range []string{"munich", "turin", "rome"} {
		c.kubectl(t, nil, "create", "namespace", "liqo-tenant-"+consumer)
		_, err := objects.Resource(liqoResource("tenants")).Namespace("liqo-tenant-"+consumer).Create(t.Context(),
			liqoObject("Tenant", "liqo-tenant-"+consumer, consumer, map[string]any{"clusterID": consumer}),
			metav1.CreateOptions{})
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	for n := range 110 {
		all.Add(1)
		go func() {
			defer all.Done()
			consumer := []string{"munich", "turin"}[n%2]
			if n >= 100 {
				consumer = "rome"
			}
			if err := c.ask(t, objects, consumer, fmt.Sprintf("slice-%03d", n)); err != nil {
				t.Error(err)
			}
		}()
	}
	var got map[string]int
	answered := func(enough int) func() error {
		return func() (err error) {
			n := 0
			if got, n, err = answers(t, objects); err == nil && n < enough {
				err = fmt.Errorf("answered: %v", got)
			}
			return err
		}
	}
	testkit.Until(t, 5*time.Minute, "some slices have an answer", answered(20))
	restart()
	all.Wait()
	testkit.Until(t, 5*time.Minute, "every slice has an answer", answered(110))
	require.Equal(t, map[string]int{"Accepted ResourceSliceResourcesAccepted": 60, "Denied NoCapacity": 40,
		"Denied NotOffered": 10}, got)
}

// answers counts the slices that have an answer, by status and reason. n is the number of all answers.
func answers(t *testing.T, objects dynamic.Interface) (count map[string]int, n int, err error) {
	list, err := objects.Resource(liqoResource("resourceslices")).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	count = map[string]int{}
	for _, slice := range list.Items {
		conditions, _, _ := unstructured.NestedSlice(slice.Object, "status", "conditions")
		if len(conditions) > 1 { // the first condition comes from Liqo
			answer := conditions[1].(map[string]any)
			count[fmt.Sprint(answer["status"], " ", answer["reason"])]++
			n++
		}
	}
	return count, n, nil
}

// ask creates a slice as crd-replicator does, and accepts it as Liqo does. Then it changes the slice three times.
func (c *cluster) ask(t *testing.T, objects dynamic.Interface, consumer, name string) error {
	slices := objects.Resource(liqoResource("resourceslices")).Namespace("liqo-tenant-" + consumer)
	slice := liqoObject("ResourceSlice", "liqo-tenant-"+consumer, name, map[string]any{"class": agent.Class,
		"consumerClusterID": consumer, "resources": map[string]any{"cpu": "1"}})
	slice.SetLabels(map[string]string{"liqo.io/originID": consumer})
	made, err := slices.Create(t.Context(), slice, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Authentication",
		"status": "Accepted"}}}
	if _, err := slices.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for range 3 {
		if made, err = slices.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		made.SetAnnotations(map[string]string{"touched": time.Now().String()})
		_, _ = slices.Update(t.Context(), made, metav1.UpdateOptions{}) // a conflict is permitted, too
	}
	return nil
}
