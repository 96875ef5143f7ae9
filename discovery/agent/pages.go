package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// These constants bound the number of objects in one response of the API server. A consumer can fill an object with
// more than a megabyte, and the agent needs several times the size of a response as memory to decode the response.
// The pages with pods are larger, because pods are numerous but usually small.
const (
	slicesPerPage = 10
	podsPerPage   = 25
)

// lister lists one page of objects.
type lister func(context.Context, metav1.ListOptions) (runtime.Object, error)

// each lists all objects page by page, and calls the function `take` for each object. To save memory, take should
// store only few fields of an object. each returns the resource version of the list. It waits at most roundWithin for
// each page.
func (list lister) each(ctx context.Context, perPage int64, take func(runtime.Object) error) (version string,
	err error) {
	options := metav1.ListOptions{Limit: perPage}
	for {
		page, err := list.page(ctx, options)
		if err != nil {
			return "", err
		}
		about, err := apimeta.ListAccessor(page)
		if err != nil {
			return "", fmt.Errorf("read a list: %w", err)
		}
		if err := apimeta.EachListItem(page, take); err != nil {
			return "", err
		}
		if options.Continue = about.GetContinue(); options.Continue == "" {
			return about.GetResourceVersion(), nil
		}
	}
}

// page lists one page, and waits for at most roundWithin.
func (list lister) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	return list(ctx, options)
}

// one returns the object with this name and UID, or NotFound. It uses a list, so that the agent needs no permission to
// get objects.
func (list lister) one(ctx context.Context, of schema.GroupResource, name string, uid types.UID) (found runtime.Object,
	err error) {
	page, err := list.page(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, err
	}
	err = apimeta.EachListItem(page, func(o runtime.Object) error {
		about, err := apimeta.Accessor(o)
		if err == nil && about.GetUID() == uid {
			found = o
		}
		return err
	})
	if err == nil && found == nil {
		err = apierrors.NewNotFound(of, name)
	}
	return found, err
}

// informer returns an informer for objects of the example's type, which stores only the fields that trim keeps. The
// informer lists the objects page by page, because client-go's reflector would request all objects in one response.
func (list lister) informer(example runtime.Object, perPage int64,
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error)) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			all := &metav1.List{}
			version, err := list.each(ctx, perPage, func(o runtime.Object) error {
				kept, err := trim(o)
				if err == nil {
					all.Items = append(all.Items, runtime.RawExtension{Object: kept.(runtime.Object)})
				}
				return err
			})
			all.ResourceVersion = version
			return all, err
		},
		WatchFuncWithContext: follow,
	}, example, 0, cache.Indexers{})
	return informer, informer.SetTransform(trim)
}
