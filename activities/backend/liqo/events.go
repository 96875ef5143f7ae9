package liqo

import (
	"context"
	"fmt"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastWarning returns the last warning of the provider's Liqo about our Tenant, in Liqo's own words, or "". Liqo
// reports a failed handshake in no condition, but only in events such as NonceNotFound or SignatureVerificationFailed
// (Liqo pkg/liqo-controller-manager/authentication/tenant-controller). It returns "" when the credentials may not
// read events.
func (p *peering) lastWarning(ctx context.Context, tenant *authv1beta1.Tenant) string {
	var events corev1.EventList
	err := p.remote.do(ctx, "read events", func(provider client.Client) error {
		return provider.List(ctx, &events, client.InNamespace(tenant.Namespace),
			client.MatchingFields{"involvedObject.uid": string(tenant.UID)})
	})
	if err != nil {
		return ""
	}
	return lastComplaint(events.Items)
}

// lastComplaint returns the text of the latest event if it is a warning, or "".
func lastComplaint(events []corev1.Event) string {
	var last corev1.Event
	for _, event := range events {
		if happened(event).After(happened(last)) {
			last = event
		}
	}
	if last.Type != corev1.EventTypeWarning {
		return ""
	}
	return fmt.Sprintf("%s: %s", last.Reason, last.Message)
}

func happened(event corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	default:
		return event.EventTime.Time
	}
}
