package observer

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Namespace is the namespace of a hub's Lease and ConfigMaps. It does not depend on the namespace of the Helm release,
// so two releases with the same hub compete for one Lease.
const Namespace = metav1.NamespaceSystem

// Name is the name of a hub's Lease and ConfigMap.
func Name(hub string) string { return "liqo-autoscaler-hub-" + hub }

// CostsName is the name of the ConfigMap with the bills of a hub's groups.
func CostsName(hub string) string { return "liqo-autoscaler-costs-" + hub }

// ConfigMap implements Memory with a ConfigMap in the consumer cluster.
type ConfigMap struct {
	Client kubernetes.Interface
	Name   string
	// Ahead, if any, is called with the time by which this process's clock is ahead of the API server's clock. The API
	// server's times have a resolution of one second.
	Ahead func(time.Duration)
}

const (
	memoryKey = "observer.json"
	// annotationReader is an annotation that each reader changes, so that the answer contains the API server's
	// current time.
	annotationReader = "liqo-autoscaler.io/read-by"
	// managerObserver and managerReader are the field managers of the writer and of the readers. The API server stores the
	// time of each field manager's last change.
	managerObserver = "liqo-autoscaler-observer"
	managerReader   = "liqo-autoscaler-reader"
)

// Load implements Memory. It computes the age from two times of the API server (metadata.managedFields): the time at
// which an observer last wrote the document, and the current time. To get the current time, Load changes an annotation.
func (c ConfigMap) Load(ctx context.Context) (document []byte, age time.Duration, err error) {
	maps := c.Client.CoreV1().ConfigMaps(Namespace)
	found, err := maps.Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, -1, nil
	}
	if err != nil {
		return nil, 0, c.failed("read", err)
	}
	written := lastChange(found, managerObserver)
	if found.Annotations == nil {
		found.Annotations = map[string]string{}
	}
	found.Annotations[annotationReader] = rand.Text()
	read, err := maps.Update(ctx, found, metav1.UpdateOptions{FieldManager: managerReader})
	if err != nil {
		return nil, 0, c.failed("mark as read", err)
	}
	if written.IsZero() {
		return []byte(found.Data[memoryKey]), -1, nil
	}
	return []byte(found.Data[memoryKey]), lastChange(read, managerReader).Sub(written), nil
}

// Read implements Memory.
func (c ConfigMap) Read(ctx context.Context) ([]byte, error) {
	found, err := c.Client.CoreV1().ConfigMaps(Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed("read", err)
	}
	return []byte(found.Data[memoryKey]), nil
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
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: c.Name,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "liqo-autoscaler"}},
		Data: map[string]string{memoryKey: string(document)},
	}
	maps := c.Client.CoreV1().ConfigMaps(Namespace)
	began := time.Now()
	written, err := maps.Update(ctx, object, metav1.UpdateOptions{FieldManager: managerObserver})
	if apierrors.IsNotFound(err) {
		written, err = maps.Create(ctx, object, metav1.CreateOptions{FieldManager: managerObserver})
	}
	if err != nil {
		return c.failed("write", err)
	}
	if at := lastChange(written, managerObserver); c.Ahead != nil && !at.IsZero() {
		c.Ahead(began.Add(time.Since(began) / 2).Sub(at.Add(time.Second / 2)))
	}
	return nil
}

func (c ConfigMap) failed(verb string, err error) error {
	return fmt.Errorf("%s ConfigMap %s/%s: %w", verb, Namespace, c.Name, err)
}
