package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// paged answers lists of pods as an API server does: no page has more objects than the limit.
func paged(t *testing.T, many int) lister {
	return func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
		require.Positive(t, o.Limit, "a list without a limit")
		require.Empty(t, o.ResourceVersion, "an API server ignores the limit of a list of resource version 0")
		from, _ := strconv.Atoi(o.Continue)
		page := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		for n := from; n < min(many, from+int(o.Limit)); n++ {
			p := pod(fmt.Sprintf("p%d", n), "n", nil)
			p.Annotations = map[string]string{"large": "large"}
			page.Items = append(page.Items, *p)
		}
		if next := from + len(page.Items); next < many {
			page.Continue = strconv.Itoa(next)
		}
		return page, nil
	}
}

func TestListsAreReadPageByPage(t *testing.T) {
	for _, many := range []int{0, 1, 10, 11, 35} {
		n := 0
		version, err := paged(t, many).each(t.Context(), 10, func(runtime.Object) error { n++; return nil })
		require.NoError(t, err)
		require.Equal(t, "7", version)
		require.Equal(t, many, n)
	}
	full := errors.New("full")
	_, err := paged(t, 11).each(t.Context(), 10, func(runtime.Object) error { return full })
	require.ErrorIs(t, err, full)
}

// TestInformerListsPageByPage checks that the informer keeps all objects of several pages, without the fields that it
// does not need.
func TestInformerListsPageByPage(t *testing.T) {
	informer, err := paged(t, 35).informer(&corev1.Pod{}, 10,
		func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil })
	require.NoError(t, err)
	go informer.RunWithContext(t.Context())
	testkit.Until(t, time.Minute, "all are listed", func() error {
		if kept := informer.GetStore().List(); len(kept) != 35 {
			return fmt.Errorf("%d are", len(kept))
		}
		return nil
	})
	for _, o := range informer.GetStore().List() {
		require.Empty(t, o.(*corev1.Pod).Annotations)
	}
}

// TestObjectIsFoundByItsUID checks that an object is found by its UID, because another object may have taken its name.
func TestObjectIsFoundByItsUID(t *testing.T) {
	list := lister(func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
		require.Equal(t, "metadata.name=a", o.FieldSelector)
		return &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}}}, nil
	})
	found, err := list.one(t.Context(), corev1.Resource("pods"), "a", "1")
	require.NoError(t, err)
	require.Equal(t, "a", found.(*corev1.Pod).Name)
	_, err = list.one(t.Context(), corev1.Resource("pods"), "a", "2")
	require.True(t, apierrors.IsNotFound(err))
}
