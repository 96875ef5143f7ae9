package liqo

import (
	"context"
	"fmt"
	"strings"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Watch follows our slices, virtual nodes and Nodes on the consumer. If several changes of an attempt arrive while
// handle runs, Watch reports them with one call.
func (b *Backend) Watch(ctx context.Context, handle func(fleet.Found)) error {
	self, err := b.consumerEventually(ctx)
	if err != nil {
		return err
	}
	w := newWatching(b.watch, b.ours(self.id), b.changes.notify)
	defer context.AfterFunc(ctx, w.dirty.ShutDown)()
	done := make(chan struct{}, len(w.informers))
	for _, informer := range w.informers {
		go func() {
			informer.RunWithContext(ctx)
			done <- struct{}{}
		}()
	}
	defer func() {
		for range w.informers {
			<-done
		}
	}()
	for _, informer := range w.informers {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return ctx.Err()
		}
	}
	defer b.changes.register()()
	for {
		name, shutDown := w.dirty.Get()
		if shutDown || ctx.Err() != nil {
			return ctx.Err()
		}
		if found, news := w.found(name); news {
			handle(found)
		}
		w.dirty.Done(name)
	}
}

// consumerEventually retries consumer until it succeeds or ctx ends.
func (b *Backend) consumerEventually(ctx context.Context) (identity, error) {
	for {
		self, err := b.consumer(ctx)
		if err == nil {
			return self, nil
		}
		if !wait.For(ctx, time.Second) {
			return identity{}, ctx.Err()
		}
	}
}

// watching is the state of one running Watch.
type watching struct {
	informers []cache.Controller
	stores    []cache.Indexer          // in the order that findings needs
	dirty     *workqueue.Typed[string] // names of objects that may have changed
	which     client.MatchingLabels    // tags of our objects
	known     map[string]fleet.Attempt // attempts that were reported, and not reported as gone since
}

const byName = "name"

// newWatching makes a watching. When a slice, a virtual node, a Node or a slice's Identity changes, the watching also
// calls the function wake with the object's name.
func newWatching(cluster client.WithWatch, which client.MatchingLabels, wake func(name string)) *watching {
	w := &watching{dirty: workqueue.NewTyped[string](), which: which, known: map[string]fleet.Attempt{}}
	notify := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		switch object := object.(type) {
		case *authv1beta1.Identity:
			wake(strings.TrimPrefix(object.Name, identityOfSlice))
		case client.Object:
			wake(object.GetName())
			w.dirty.Add(object.GetName())
		}
	}
	follow := func(object client.Object, list client.ObjectList, which client.ListOption) cache.Indexer {
		store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: listerWatcher(cluster, list, which),
			ObjectType:    object,
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc:    notify,
				UpdateFunc: func(_, object any) { notify(object) },
				DeleteFunc: notify,
			},
			Indexers: cache.Indexers{byName: func(object any) ([]string, error) {
				return []string{object.(client.Object).GetName()}, nil
			}},
		})
		w.informers = append(w.informers, informer)
		return store.(cache.Indexer)
	}
	w.stores = []cache.Indexer{
		follow(&authv1beta1.ResourceSlice{}, &authv1beta1.ResourceSliceList{}, which),
		follow(&offloadingv1beta1.VirtualNode{}, &offloadingv1beta1.VirtualNodeList{}, which),
		follow(&corev1.Node{}, &corev1.NodeList{}, nodesOf(backend.Scope{})),
	}
	follow(&authv1beta1.Identity{}, &authv1beta1.IdentityList{}, client.MatchingLabels{})
	return w
}

func listerWatcher(cluster client.WithWatch, list client.ObjectList, which client.ListOption) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, consumerTimeout) // the client has no timeout, because it also watches
			defer cancel()
			found := list.DeepCopyObject().(client.ObjectList)
			err := cluster.List(ctx, found, which, &client.ListOptions{Raw: &options})
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return cluster.Watch(ctx, list.DeepCopyObject().(client.ObjectList), which, &client.ListOptions{Raw: &options})
		},
	}
}

// found returns the existing objects of the attempt with that object name. The result news is false when there is
// nothing to report: the attempt is not ours, or was already reported as gone.
func (w *watching) found(name string) (found fleet.Found, news bool) {
	all := findings{}
	for _, store := range w.stores {
		objects, err := store.ByIndex(byName, name)
		if err != nil { // the index always exists
			panic(fmt.Sprintf("look up %s: %v", name, err))
		}
		for _, object := range objects {
			all.add(object.(client.Object), w.which)
		}
	}
	if entry := all[name]; entry != nil {
		w.known[name] = entry.Attempt
		return *entry, true
	}
	attempt, known := w.known[name]
	delete(w.known, name)
	return fleet.Found{Attempt: attempt}, known
}
