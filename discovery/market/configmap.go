package market

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// document is the key of the market in the ConfigMap.
const document = "market.json"

// ConfigMap is a Store in a ConfigMap of the consumer cluster.
type ConfigMap struct {
	Client          kubernetes.Interface
	Namespace, Name string
}

// ConfigMapName returns the name of the ConfigMap with a hub's market.
func ConfigMapName(hub string) string { return "liqo-autoscaler-market-" + hub }

// Load implements Store.
func (c ConfigMap) Load(ctx context.Context) (m Market, err error) {
	found, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return m, ErrNone
	}
	if err == nil {
		err = json.Unmarshal([]byte(found.Data[document]), &m)
	}
	if err != nil {
		return m, fmt.Errorf("read market from ConfigMap %s/%s: %w", c.Namespace, c.Name, err)
	}
	return m, nil
}

// Save implements Store.
func (c ConfigMap) Save(ctx context.Context, m Market) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "liqo-autoscaler"}},
		Data: map[string]string{document: string(raw)},
	}
	maps := c.Client.CoreV1().ConfigMaps(c.Namespace)
	_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	}
	return err
}
