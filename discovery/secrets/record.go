package secrets

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// record is the part of a Secret that the informer stores: what List and Version need, without the kubeconfig.
type record struct {
	metav1.ObjectMeta
	offer   fleet.Offer
	err     error  // the reason for which the Secret is not a valid offer, or nil
	version string // fingerprint of the kubeconfig
}

// strip replaces a Secret by a record before the informer stores it. It returns any other object unchanged.
func strip(item any) (any, error) {
	secret, ok := item.(*corev1.Secret)
	if !ok {
		return item, nil
	}
	sum := sha256.Sum256(secret.Data[discovery.DefaultKey])
	r := &record{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secret.Namespace, Name: secret.Name, Labels: secret.Labels,
			UID: secret.UID, ResourceVersion: secret.ResourceVersion,
		},
		version: hex.EncodeToString(sum[:]),
	}
	spec, err := parse(secret)
	r.offer, r.err = spec.Offer(), err
	return r, nil
}
