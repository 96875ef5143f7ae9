package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// Tenants is the Sink for a provider without a discovery server. It writes each offer to a ConfigMap in the
// consumer's tenant namespace in this cluster. The consumer reads the ConfigMap with its credentials for this
// cluster. Tenants is not safe for concurrent use.
type Tenants struct {
	Kube kubernetes.Interface
	// Config returns the config, which contains the consumer of each offer.
	Config func() Config

	places map[string]place             // by offer
	data   map[string]map[string]string // by consumer and hub, as applied
}

// place identifies one key of a consumer's ConfigMap. Each hub of the consumer has a key.
type place struct{ consumer, hub string }

// writeWithin bounds one write, so that the agent can stop even if the API server does not answer.
const writeWithin = 5 * time.Second

// Restart implements Sink.
func (t *Tenants) Restart() { t.places, t.data = map[string]place{}, map[string]map[string]string{} }

// Put implements Sink. It omits the credentials from the document, because the consumer already has them.
func (t *Tenants) Put(ctx context.Context, offer api.Posted, ttl time.Duration) error {
	at, ok := t.placeOf(offer.Name)
	if !ok {
		return fmt.Errorf("offer %s is no longer in the config", offer.Name)
	}
	for name, other := range t.places {
		if other == at && name != offer.Name {
			return fmt.Errorf("offers %s and %s are both for hub %s of consumer %s: keep one", name, offer.Name, at.hub,
				at.consumer)
		}
	}
	if was, ok := t.places[offer.Name]; ok && was != at { // the config now assigns the offer to another consumer or hub
		if err := t.Withdraw(ctx, offer.Name); err != nil {
			return err
		}
	}
	published := discovery.Published{Spec: offer.Spec, Contract: offer.Contract, TTLSeconds: int64(ttl / time.Second),
		Renewed: time.Now().UTC()}
	published.Credentials = discovery.CredentialsSpec{}
	document, err := json.Marshal(published)
	if err != nil {
		return fmt.Errorf("encode offer %s: %w", offer.Name, err)
	}
	if t.data[at.consumer] == nil {
		t.data[at.consumer] = map[string]string{}
	}
	t.places[offer.Name], t.data[at.consumer][at.hub] = at, string(document)
	return t.apply(ctx, at.consumer)
}

// Withdraw implements Sink.
func (t *Tenants) Withdraw(ctx context.Context, name string) error {
	at, ok := t.places[name]
	if !ok {
		return nil
	}
	delete(t.data[at.consumer], at.hub)
	if err := t.apply(ctx, at.consumer); err != nil {
		return err
	}
	delete(t.places, name)
	return nil
}

func (t *Tenants) placeOf(name string) (place, bool) {
	for _, o := range t.Config().Offers {
		if o.Name == name {
			return place{o.Consumer, o.Hub}, true
		}
	}
	return place{}, false
}

// apply writes all offers to one consumer into the consumer's ConfigMap, by server-side apply. Server-side apply
// removes the keys of withdrawn offers. It also removes keys that another agent wrote, because all agents use the
// same field manager.
func (t *Tenants) apply(ctx context.Context, consumer string) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	namespace := "liqo-tenant-" + consumer
	written := corev1.ConfigMap(discovery.PublishedName, namespace).WithData(t.data[consumer]).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": Lease})
	options := metav1.ApplyOptions{FieldManager: Lease, Force: true}
	_, err := t.Kube.CoreV1().ConfigMaps(namespace).Apply(ctx, written, options)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s does not exist: apply the output of liqo-autoscaler provider-access --consumer-id %s",
			namespace, consumer)
	case err != nil:
		return fmt.Errorf("write ConfigMap %s/%s: %w", namespace, discovery.PublishedName, err)
	default:
		return nil
	}
}
