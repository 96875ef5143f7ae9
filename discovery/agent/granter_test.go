package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// versioned makes the fake cluster refuse updates of objects that have changed in the meantime, as an API server does.
// The cluster also loses some updates, and the answers to some updates that it has accepted.
func (c *cluster) versioned() {
	updates := 0
	c.objects.PrependReactor("update", "resourceslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
		update := a.(clienttesting.UpdateAction)
		next := update.GetObject().(*unstructured.Unstructured).DeepCopy()
		found, err := c.objects.Tracker().Get(sliceResource, a.GetNamespace(), next.GetName())
		if err != nil {
			return true, nil, err
		}
		if is := found.(*unstructured.Unstructured).GetResourceVersion(); is != next.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(sliceResource.GroupResource(), next.GetName(), fmt.Errorf("is at %s", is))
		}
		updates++
		if updates == 11 || updates == 53 {
			return true, nil, apierrors.NewInternalError(fmt.Errorf("lost"))
		}
		version, _ := strconv.Atoi(next.GetResourceVersion())
		next.SetResourceVersion(strconv.Itoa(version + 1))
		if err := c.objects.Tracker().Update(sliceResource, next, a.GetNamespace()); err != nil {
			return true, nil, err
		}
		if updates == 29 || updates == 71 {
			return true, nil, apierrors.NewTimeoutError("the answer is lost", 1)
		}
		return true, next, nil
	})
}

// versionedRecord makes the fake cluster refuse an update of the record of grants when its resourceVersion is old.
func (c *cluster) versionedRecord() { c.versionedRecordOf(c.kube.Tracker()) }

func (c *cluster) versionedRecordOf(tracker clienttesting.ObjectTracker) {
	configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")
	c.kube.PrependReactor("*", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		write, ok := a.(clienttesting.UpdateAction) // a create action has the same methods
		if !ok || a.GetVerb() != "create" && a.GetVerb() != "update" {
			return false, nil, nil
		}
		next := write.GetObject().(*corev1.ConfigMap).DeepCopy()
		if a.GetVerb() == "create" {
			next.ResourceVersion = "1"
			return true, next, tracker.Create(configMaps, next, a.GetNamespace())
		}
		found, err := tracker.Get(configMaps, a.GetNamespace(), next.Name)
		if err != nil {
			return true, nil, err
		}
		if is := found.(*corev1.ConfigMap).ResourceVersion; is != next.ResourceVersion {
			return true, nil, apierrors.NewConflict(configMaps.GroupResource(), next.Name, fmt.Errorf("is at %s", is))
		}
		version, _ := strconv.Atoi(next.ResourceVersion)
		next.ResourceVersion = strconv.Itoa(version + 1)
		return true, next, tracker.Update(configMaps, next, a.GetNamespace())
	})
}

func (c *cluster) tenant(t *testing.T, id string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"kind": "Tenant",
		"apiVersion": "authentication.liqo.io/v1beta1", "spec": map[string]any{"clusterID": id}}}
	o.SetName(id)
	tenants := c.objects.Resource(tenantResource).Namespace("liqo-tenant-" + id)
	_, err := tenants.Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
}

// asking returns a slice of one CPU that Liqo has admitted.
func asking(consumer string, n int) *unstructured.Unstructured {
	o := liqoSlice(fmt.Sprintf("%s-%03d", consumer, n), consumer, "1")
	o.SetUID(types.UID(o.GetName()))
	o.SetResourceVersion("1")
	o.Object["spec"].(map[string]any)["class"] = Class
	o.Object["status"] = map[string]any{"authParams": map[string]any{"apiServer": "https://x"},
		"conditions": []any{map[string]any{"type": "Authentication", "status": "Accepted"}}}
	return o
}

// touch changes the slice again and again, as another controller does.
func touch(ctx context.Context, slices dynamic.ResourceInterface, name string) {
	for n := range 5 {
		if o, err := slices.Get(ctx, name, metav1.GetOptions{}); err == nil {
			o.SetAnnotations(map[string]string{"touched": strconv.Itoa(n)})
			_, _ = slices.Update(ctx, o, metav1.UpdateOptions{})
		}
	}
}

const storageClasses = "[map[default:true storageClassName:fast] map[default:false storageClassName:slow]]"

// answers returns the number of granted slices, and the number of slices that were denied because no capacity was
// free. It returns an error while a slice has no answer.
func answers(all []unstructured.Unstructured) (granted, full int, err error) {
	for i := range all {
		s := sliceOf(&all[i])
		conditions, _, _ := unstructured.NestedSlice(all[i].Object, "status", "conditions")
		switch s.condition(conditionResources) {
		case accepted:
			granted++
			_, kept, _ := unstructured.NestedString(all[i].Object, "status", "authParams", "apiServer")
			storage, _, _ := unstructured.NestedSlice(all[i].Object, "status", "storageClasses")
			if !kept || s.Status.Resources.Cpu().String() != "1" || fmt.Sprint(storage) != storageClasses {
				return 0, 0, fmt.Errorf("granted wrongly: %v", all[i].Object["status"])
			}
		case denied:
			if last := conditions[len(conditions)-1].(map[string]any); last["reason"] == reasonFull {
				full++
			}
		default:
			return 0, 0, fmt.Errorf("%s has no answer yet", s.Name)
		}
	}
	return granted, full, nil
}

// Two consumers create 100 slices concurrently, and 60 slices fit. Exactly 60 are granted, in spite of concurrent
// changes of the slices and of lost answers.
func TestNoRoomIsGrantedTwice(t *testing.T) {
	c := newCluster() // without a watch, because a fake watch blocks under this many events
	c.versioned()
	config, _ := configFile(t, `
provider: milan-1
storageClasses: [fast, slow]
offers:
- {consumer: munich, name: a, credentials: {secretRef: {namespace: lend, name: milan}}}
- {consumer: turin, name: b, credentials: {secretRef: {namespace: lend, name: milan}}}
`)
	c.tenant(t, "munich")
	c.tenant(t, "turin")
	world := World{Nodes: []*corev1.Node{node("a", amounts("60", "600Gi", "pods", "110"))},
		Slices: []Slice{slice("turin", "", amounts("60", "1Gi"))}} // the state that a delayed watch shows
	agreed, _, err := config.Get()
	require.NoError(t, err)
	g := c.granter(agreed, world)
	waits, ended := make(chan struct{}, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		g.run(ctx, waits)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})

	var all sync.WaitGroup
	for n := range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			consumer := []string{"munich", "turin"}[n%2]
			slices := c.objects.Resource(sliceResource).Namespace("liqo-tenant-" + consumer)
			if _, err := slices.Create(t.Context(), asking(consumer, n), metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			touch(t.Context(), slices, asking(consumer, n).GetName())
			select {
			case waits <- struct{}{}:
			default:
			}
		}()
	}
	all.Wait()
	testkit.Until(t, 5*patience, "every slice has an answer", func() error {
		list, err := c.objects.Resource(sliceResource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		granted, full, err := answers(list.Items)
		if err == nil {
			require.Equal(t, []int{60, 40}, []int{granted, full})
		}
		return err
	})
}

func (c *cluster) granter(config Config, world World) *granter {
	return newGranter(granter{objects: c.objects, record: &record{kube: c.kube, namespace: "liqo"},
		config: func() Config { return config }, world: func() World { return c.watched(world) }, log: quiet,
		metrics: NewMetrics("test", prometheus.NewRegistry())})
}

// watched returns the world with the slices that a watch without a delay would deliver.
func (c *cluster) watched(world World) World {
	list, err := c.objects.Resource(sliceResource).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return world
	}
	for i := range list.Items {
		world.Slices = append(world.Slices, sliceOf(trimLiqo(&list.Items[i])))
	}
	return world
}

// The API server refuses the answer to one slice, for example because of a policy. This does not delay other slices.
func TestRefusedAnswerDelaysNoOtherSlice(t *testing.T) {
	c := newCluster()
	c.objects.PrependReactor("update", "resourceslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() == "liqo-tenant-munich" {
			return true, nil, apierrors.NewForbidden(sliceResource.GroupResource(), "munich-000", errors.New("a policy"))
		}
		return false, nil, nil
	})
	for n, consumer := range []string{"munich", "turin"} {
		c.tenant(t, consumer)
		_, err := c.objects.Resource(sliceResource).Namespace("liqo-tenant-"+consumer).Create(t.Context(),
			asking(consumer, n), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	g := c.granter(Config{Offers: []OfferConfig{{Consumer: "munich"}, {Consumer: "turin"}}},
		World{Nodes: []*corev1.Node{node("a", amounts("60", "600Gi", "pods", "110"))}})
	_, err := g.round(t.Context())
	require.ErrorContains(t, err, "a policy")
	found, err := c.objects.Resource(sliceResource).Namespace("liqo-tenant-turin").Get(t.Context(), "turin-001",
		metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, accepted, sliceOf(found).condition(conditionResources))
}

// The record has a grant, but the write of the grant into the slice's status is lost. The grant keeps its capacity,
// and no other waiting slice gets this capacity.
func TestGrantWithALostAnswerKeepsItsRoom(t *testing.T) {
	c := newCluster()
	lost := false
	c.objects.PrependReactor("update", "resourceslices", func(clienttesting.Action) (bool, runtime.Object, error) {
		if lost {
			return false, nil, nil
		}
		lost = true
		return true, nil, apierrors.NewTimeoutError("the answer is lost", 1)
	})
	g := c.granter(toBoth, room("1"))
	for n, consumer := range []string{"turin", "munich"} { // munich's slice would be the first by its namespace
		c.tenant(t, consumer)
		c.create(t, asking(consumer, n))
		again, err := g.round(t.Context())
		require.Equal(t, consumer == "turin", apierrors.IsTimeout(err), "%v", err)
		require.Positive(t, again, "the lost answer is due")
	}
	require.Equal(t, map[string]string{"turin-000": "", "munich-001": denied}, c.answered(t))
	clear(g.failures) // some time later
	_, err := g.round(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"turin-000": accepted, "munich-001": denied}, c.answered(t))
}

// create creates a slice.
func (c *cluster) create(t *testing.T, slice *unstructured.Unstructured) {
	t.Helper()
	_, err := c.objects.Resource(sliceResource).Namespace(slice.GetNamespace()).Create(t.Context(), slice,
		metav1.CreateOptions{})
	require.NoError(t, err)
}

// answered returns the conditions of all slices by their names.
func (c *cluster) answered(t *testing.T) map[string]string {
	t.Helper()
	list, err := c.objects.Resource(sliceResource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	conditions := map[string]string{}
	for i := range list.Items {
		s := sliceOf(&list.Items[i])
		conditions[s.Name] = s.condition(conditionResources)
	}
	return conditions
}

// A consumer may request anything that the schema admits. The agent denies an unreadable request soon, and the request
// does not delay other slices.
func TestUnreadableSliceIsDenied(t *testing.T) {
	for _, amount := range []string{"1e1.5", "1e100000000"} {
		c := newCluster()
		for n, consumer := range []string{"munich", "turin"} {
			c.tenant(t, consumer)
			o := asking(consumer, n)
			if consumer == "munich" {
				require.NoError(t, unstructured.SetNestedField(o.Object, amount, "spec", "resources", "cpu"))
			}
			_, err := c.objects.Resource(sliceResource).Namespace("liqo-tenant-"+consumer).Create(t.Context(), o,
				metav1.CreateOptions{})
			require.NoError(t, err)
		}
		g := c.granter(Config{Offers: []OfferConfig{{Consumer: "munich"}, {Consumer: "turin"}}},
			World{Nodes: []*corev1.Node{node("a", amounts("60", "600Gi", "pods", "110"))}})
		_, err := g.round(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]string{"munich-000": denied, "turin-001": accepted}, c.answered(t), amount)
	}
}
