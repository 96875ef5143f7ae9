package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Cluster watches the objects that a World contains. Watch creates a Cluster.
type Cluster struct {
	nodes, pods, slices, tenants cache.SharedIndexInformer
	record                       *record // the record of grants; nil when this agent grants no slices
	// Both channels receive values: changed after any change, and sliced after a change of a slice or a Tenant.
	changed, sliced chan struct{}
	log             *slog.Logger
}

// Watch returns a Cluster. The Cluster makes no request before its method Run is called.
func Watch(kube kubernetes.Interface, objects dynamic.Interface, record *record, log *slog.Logger) (*Cluster, error) {
	typed := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(trim))
	pods := kube.CoreV1().Pods(metav1.NamespaceAll)
	c := &Cluster{
		nodes:   typed.Core().V1().Nodes().Informer(),
		changed: make(chan struct{}, 1), sliced: make(chan struct{}, 1), record: record, log: log,
	}
	var err error
	c.pods, err = lister(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return pods.List(ctx, o)
	}).informer(&corev1.Pod{}, podsPerPage, pods.Watch)
	if err != nil {
		return nil, err
	}
	if c.slices, err = watchLiqo(objects, sliceResource); err != nil {
		return nil, err
	}
	if c.tenants, err = watchLiqo(objects, tenantResource); err != nil {
		return nil, err
	}
	for _, informer := range c.informers() {
		if err := notifyOnChange(informer, c.changed); err != nil {
			return nil, err
		}
	}
	return c, errors.Join(notifyOnChange(c.slices, c.sliced), notifyOnChange(c.tenants, c.sliced))
}

// listLiqo returns a lister of the objects of one of Liqo's resources, in all namespaces.
func listLiqo(objects dynamic.Interface, of schema.GroupVersionResource) lister {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return objects.Resource(of).List(ctx, o)
	}
}

func watchLiqo(objects dynamic.Interface, of schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
	return listLiqo(objects, of).informer(&unstructured.Unstructured{}, slicesPerPage, objects.Resource(of).Watch)
}

// notifyOnChange sends a value to the channel word after each change that the informer reports. The channel must have
// a buffer of one. While the buffer is full, notifyOnChange sends no other value.
func notifyOnChange(informer cache.SharedIndexInformer, word chan struct{}) error {
	note := func() {
		select {
		case word <- struct{}{}:
		default: // the buffer already has a value
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { note() }, UpdateFunc: func(_, _ any) { note() }, DeleteFunc: func(any) { note() },
	})
	return err
}

func (c *Cluster) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{c.nodes, c.pods, c.slices, c.tenants}
}

// Run watches the objects until ctx ends.
func (c *Cluster) Run(ctx context.Context) {
	var watching sync.WaitGroup
	for _, informer := range c.informers() {
		watching.Go(func() { informer.Run(ctx.Done()) })
	}
	watching.Wait()
}

// Synced returns an error that names the objects that have not been listed yet.
func (c *Cluster) Synced() error {
	for kind, informer := range map[string]cache.SharedIndexInformer{
		"nodes": c.nodes, "pods": c.pods, "Liqo's ResourceSlices": c.slices,
		"Liqo's Tenants": c.tenants,
	} {
		if !informer.HasSynced() {
			return errors.New(kind + " have not been listed yet, see the log")
		}
	}
	return nil
}

const syncEvery = 100 * time.Millisecond

// World returns the present state of the cluster. The state is complete when Synced returns nil.
func (c *Cluster) World() (w World) {
	for _, o := range c.nodes.GetStore().List() {
		w.Nodes = append(w.Nodes, o.(*corev1.Node))
	}
	for _, o := range c.pods.GetStore().List() {
		w.Pods = append(w.Pods, o.(*corev1.Pod))
	}
	for _, o := range c.slices.GetStore().List() {
		w.Slices = append(w.Slices, sliceOf(o.(*unstructured.Unstructured)))
	}
	var tenants []*unstructured.Unstructured
	for _, o := range c.tenants.GetStore().List() {
		tenants = append(tenants, o.(*unstructured.Unstructured))
	}
	settle(w.Slices, tenantsOf(tenants), c.record.grants())
	return w
}
