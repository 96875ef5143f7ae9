package observer

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Namespace is the namespace of a hub's Lease and ConfigMaps. It does not depend on the namespace of the Helm release,
// so two releases with the same hub compete for one Lease.
const Namespace = metav1.NamespaceSystem

// Name is the name of a hub's Lease and ConfigMap.
func Name(hub string) string { return "liqo-autoscaler-hub-" + hub }

// CostsName is the name of the ConfigMap with the bills of a hub's groups.
func CostsName(hub string) string { return "liqo-autoscaler-costs-" + hub }

// ConfigMap implements Memory and Shared with a key of a ConfigMap in the consumer cluster. The other keys of the
// ConfigMap stay as they are.
type ConfigMap struct {
	Client kubernetes.Interface
	Name   string
	Key    string // the default is the key of the observer's state
	// Ahead, if any, is called with the time by which this process's clock is ahead of the API server's clock. The API
	// server's times have a resolution of one second.
	Ahead func(time.Duration)
}

// PositionsKey is the key of the document with the positions of groups. Its ConfigMap is the hub's, see Name.
const PositionsKey = "positions.json"

const (
	memoryKey = "observer.json"
	// annotationReader is an annotation that each reader changes, so that the answer contains the API server's
	// current time.
	annotationReader = "liqo-autoscaler.io/read-by"
	// The field managers are managerObserver for Save, managerReader for Load, and managerGroup for Change. The API server
	// stores the time of each field manager's last change.
	managerObserver = "liqo-autoscaler-observer"
	managerReader   = "liqo-autoscaler-reader"
	managerGroup    = "liqo-autoscaler-group"
)

// Load implements Memory. It computes the age from two times of the API server (metadata.managedFields): the time at
// which an observer last wrote the document, and the current time. To get the current time, Load changes an annotation.
func (c ConfigMap) Load(ctx context.Context) (document []byte, age time.Duration, err error) {
	var written time.Time
	read, err := c.edit(ctx, managerReader, func(found *corev1.ConfigMap) bool {
		document, written = c.document(found), lastChange(found, managerObserver)
		metav1.SetMetaDataAnnotation(&found.ObjectMeta, annotationReader, rand.Text())
		return found.UID != ""
	})
	switch {
	case err != nil:
		return nil, 0, err
	case written.IsZero():
		return document, -1, nil
	}
	return document, lastChange(read, managerReader).Sub(written), nil
}

// Read implements Memory and Shared.
func (c ConfigMap) Read(ctx context.Context) ([]byte, error) {
	found, err := c.Client.CoreV1().ConfigMaps(Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed("read", err)
	}
	return c.document(found), nil
}

func (c ConfigMap) key() string { return cmp.Or(c.Key, memoryKey) }

// document returns the document, or nil if the ConfigMap has none.
func (c ConfigMap) document(in *corev1.ConfigMap) []byte {
	if text := in.Data[c.key()]; text != "" {
		return []byte(text)
	}
	return nil
}

// lastChange returns the time of the field manager's last change, by the API server's clock; zero without a change.
func lastChange(object *corev1.ConfigMap, manager string) (last time.Time) {
	for _, f := range object.ManagedFields {
		if f.Manager == manager && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// Save implements Memory. It creates the ConfigMap if it does not exist.
func (c ConfigMap) Save(ctx context.Context, document []byte) error {
	began := time.Now()
	written, err := c.edit(ctx, managerObserver, func(object *corev1.ConfigMap) bool {
		began = time.Now()
		c.set(object, document)
		return true
	})
	if err != nil {
		return err
	}
	if at := lastChange(written, managerObserver); c.Ahead != nil && !at.IsZero() {
		c.Ahead(began.Add(time.Since(began) / 2).Sub(at.Add(time.Second / 2)))
	}
	return nil
}

// Change implements Shared. It creates the ConfigMap if it does not exist.
func (c ConfigMap) Change(ctx context.Context, edit func([]byte) []byte) error {
	_, err := c.edit(ctx, managerGroup, func(object *corev1.ConfigMap) bool {
		c.set(object, edit(c.document(object)))
		return true
	})
	return err
}

func (c ConfigMap) set(object *corev1.ConfigMap, document []byte) {
	object.Labels = map[string]string{"app.kubernetes.io/managed-by": "liqo-autoscaler"}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data[c.key()] = string(document)
}

// edit reads the ConfigMap, calls change, and writes the ConfigMap. If the ConfigMap does not exist, change receives an
// object without a UID. edit writes nothing when change returns false. When another process writes at the same time,
// edit starts again.
func (c ConfigMap) edit(ctx context.Context, manager string, change func(*corev1.ConfigMap) bool) (
	written *corev1.ConfigMap, err error) {
	maps := c.Client.CoreV1().ConfigMaps(Namespace)
	other := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(retry.DefaultRetry, other, func() error {
		object, err := maps.Get(ctx, c.Name, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if missing {
			object, err = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: c.Name}}, nil
		}
		switch {
		case err != nil:
			return c.failed("read", err)
		case !change(object):
			written = object
			return nil
		case missing:
			written, err = maps.Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
		default:
			written, err = maps.Update(ctx, object, metav1.UpdateOptions{FieldManager: manager})
		}
		if err != nil {
			return c.failed("write", err)
		}
		return nil
	})
	return written, err
}

func (c ConfigMap) failed(verb string, err error) error {
	return fmt.Errorf("%s ConfigMap %s/%s: %w", verb, Namespace, c.Name, err)
}
