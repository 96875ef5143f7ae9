package pair

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// counts holds how many objects were created, changed, or kept unchanged.
type counts struct{ created, changed, kept int }

// String renders the counts for messages.
func (c counts) String() string {
	return fmt.Sprintf("%d created, %d changed, %d unchanged", c.created, c.changed, c.kept)
}

// apply creates missing objects, and changes objects that have labelSetup and differ from the manifest. If dry is
// true, it only counts these objects.
func apply(ctx context.Context, all []wanted, consumer string, dry bool) (done counts, err error) {
	for _, w := range all {
		switch {
		case w.live == nil:
			done.created++
			if !dry {
				err = w.create(ctx, consumer)
			}
		case w.differ != "":
			done.changed++
			if !dry {
				err = w.change(ctx)
			}
		default:
			done.kept++
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (w wanted) create(ctx context.Context, consumer string) error {
	object := w.DeepCopy()
	if !w.shared() {
		object.SetLabels(with(object.GetLabels(), labelSetup, consumer))
	}
	if _, err := w.client.Create(ctx, object, metav1.CreateOptions{FieldManager: manager}); err != nil {
		return fmt.Errorf("create %s: %w", w.name(), err)
	}
	return nil
}

func (w wanted) change(ctx context.Context) error {
	object := w.live.DeepCopy()
	object.Object = merged(object.Object, w.Object)
	labels := object.GetLabels()
	for key, value := range w.GetLabels() {
		labels = with(labels, key, value)
	}
	object.SetLabels(labels)
	if _, err := w.client.Update(ctx, object, metav1.UpdateOptions{FieldManager: manager}); err != nil {
		return fmt.Errorf("change %s: %w", w.name(), err)
	}
	return nil
}

// manager is the field manager of all changes by setup.
const manager = "liqo-autoscaler-setup"

func with(labels map[string]string, key, value string) map[string]string {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

// remove deletes the consumer's objects that have labelSetup. It first deletes the ServiceAccount, so that all tokens
// of the account become invalid. Then it deletes the other objects, and at last the namespaces. If dry is true, it
// only counts the objects.
func remove(ctx context.Context, all []wanted, consumer string, dry bool) (removed int, err error) {
	for _, turn := range []func(kind string) bool{
		func(kind string) bool { return kind == "ServiceAccount" },
		func(kind string) bool { return kind != "ServiceAccount" && kind != "Namespace" },
		func(kind string) bool { return kind == "Namespace" },
	} {
		for _, w := range all {
			if !turn(w.GetKind()) || !w.hasMark(consumer) || w.shared() {
				continue
			}
			removed++
			if dry {
				continue
			}
			uid := w.live.GetUID()
			err := w.client.Delete(ctx, w.GetName(), metav1.DeleteOptions{Preconditions: preconditions(uid)})
			if err != nil && !apierrors.IsNotFound(err) {
				return removed, fmt.Errorf("delete %s: %w", w.name(), err)
			}
		}
	}
	return removed, nil
}

func preconditions(uid types.UID) *metav1.Preconditions {
	if uid == "" {
		return nil
	}
	return &metav1.Preconditions{UID: &uid}
}
