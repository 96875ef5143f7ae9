package liqo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Observe reads our Tenant and our slices on the provider. It lists the consumer's slices first and the provider's
// slices second. So a slice that is made between the two lists is not reported as absent. If a slice is returned
// between the two lists, Observe may report it as absent. This does no harm, because a single report does not make an
// instance lost.
func (b *Backend) Observe(ctx context.Context, provider fleet.Provider) (seen backend.Observation, err error) {
	p := b.peering(provider)
	if err := p.locate(ctx); err != nil {
		return seen, fmt.Errorf("observe provider %s: %w", provider.ID, err)
	}
	if p.ownNS {
		if err := p.admit(ctx, p.localNS); err != nil {
			return seen, fmt.Errorf("observe provider %s: %w", provider.ID, err)
		}
	}
	here, err := p.slicesHere(ctx)
	if err != nil {
		return seen, fmt.Errorf("observe provider %s: %w", provider.ID, err)
	}
	secrets, err := p.controlPlaneSecrets(ctx)
	if err != nil {
		return seen, fmt.Errorf("observe provider %s: %w", provider.ID, err)
	}
	there, err := b.open(ctx, provider.Credentials) // this error is ours, or caused by the credentials
	if err != nil {
		return seen, fmt.Errorf("observe provider %s: %w", provider.ID, err)
	}
	made, err := p.virtualThere(ctx)
	if err != nil {
		return seen, fmt.Errorf("observe provider %s: %w", provider.ID, err)
	}
	fault, err := p.faultHere(ctx, made)
	if err != nil {
		return seen, fmt.Errorf("observe provider %s: %w", provider.ID, err)
	}
	seen, err = p.observed(ctx, there, here, p.networkNeeded(made))
	if err != nil || len(secrets) == 0 { // our Liqo does not act on the provider, so no Tenant is expected
		seen = backend.Observation{}
	}
	seen.Fault = fault
	return seen, observeError(provider.ID, err)
}

// faultHere returns the fault of the peering on the consumer. No provider is responsible for such a fault.
func (p *peering) faultHere(ctx context.Context, made []offloadingv1beta1.VirtualNode) (fleet.Fault, error) {
	lacks, err := p.noRoomHere(ctx)
	if lacks != "" || err != nil {
		return fleet.Fault{Condition: fleet.ConditionNoRoomForGateway, Message: lacks}, err
	}
	divided, err := p.divided(ctx, made)
	if divided != "" {
		return fleet.Fault{Condition: fleet.ConditionNamespaceDivided, Message: shorten.Words(divided, maxWords)}, err
	}
	return fleet.Fault{}, err
}

// slicesHere lists the consumer's slices of this hub for the provider. It omits slices that are being returned.
func (p *peering) slicesHere(ctx context.Context) (names []string, err error) {
	var found authv1beta1.ResourceSliceList
	which := with(p.labels(), map[string]string{consts.RemoteClusterID: p.provider.ID})
	if err := p.local.List(ctx, &found, client.MatchingLabels(which)); err != nil {
		return nil, fmt.Errorf("list our slices: %w", err)
	}
	for i := range found.Items {
		if found.Items[i].DeletionTimestamp == nil {
			names = append(names, found.Items[i].Name)
		}
	}
	return names, nil
}

// observed reads the state of the provider. The parameter needed is true if a network must exist.
func (p *peering) observed(ctx context.Context, provider client.Client, here []string,
	needed bool) (seen backend.Observation, err error) {
	found, err := p.identify(withIdentityBound(ctx), provider)
	if err != nil {
		return seen, err
	}
	if found.id != p.provider.ID {
		return seen, errorf(backend.ErrInvalid, "the credentials lead to cluster %s", found.id)
	}
	if err := p.sameProvider(ctx, provider); err != nil {
		return seen, err
	}
	namespace, err := p.tenantNamespaceThere(ctx, provider)
	if err != nil {
		return seen, err
	}
	if namespace == "" {
		text := "our tenant namespace is gone there"
		return backend.Observation{Tenant: fleet.RefusingRemoved, Absent: here, Message: text}, nil
	}
	if err := p.slicesThere(ctx, provider, namespace, here, &seen); err != nil {
		return seen, err
	}
	if err := p.tenantThere(ctx, provider, namespace, &seen); err != nil {
		return seen, err
	}
	return seen, p.networkSeen(ctx, provider, namespace, needed, &seen)
}

// networkSeen records the state of both Connections, if the peering needs a network. An account of an earlier release
// without networks may not read Connections; networkSeen then records nothing.
func (p *peering) networkSeen(ctx context.Context, provider client.Client, namespace string, needed bool,
	seen *backend.Observation) error {
	if p.provider.Network.ModeOrDefault() == fleet.NetworkNone && !needed {
		return nil
	}
	here, there := p.halves()
	there.ns = namespace
	there.do = func(_ context.Context, _ string, action func(cluster client.Client) error) error {
		return action(provider)
	}
	if err := here.read(ctx); err != nil {
		return err
	}
	err := there.read(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return err
	case !here.has() && !there.has():
		if needed {
			seen.Network = fmt.Sprintf("the network with provider %s was removed, on both clusters", p.provider.ID)
		}
		return nil
	}
	if !here.connected() || !there.connected() {
		return p.notConnected(ctx, here, there, seen)
	}
	return recordMeasurements(ctx, seen, here, there)
}

// recordMeasurements records the last measurement of each end, and the time after which an end without a new
// measurement counts as dead.
func recordMeasurements(ctx context.Context, seen *backend.Observation, ends ...*half) error {
	for _, h := range ends {
		measuredAt := text(h.objects[kindConnection], "status", "latency", "timestamp")
		seen.Heard = append(seen.Heard, shorten.Words(measuredAt, maxWords))
		interval, err := h.interval(ctx)
		if err != nil {
			return err
		}
		seen.Quiet = max(seen.Quiet, 3*interval)
	}
	return nil
}

// notConnected records why a network is not connected, and whether our own gateway is the cause.
func (p *peering) notConnected(ctx context.Context, here, there *half, seen *backend.Observation) error {
	seen.Network = here.describe() + "; " + there.describe()
	if gateway := cmp.Or(here.objects[kindServer], here.objects[kindClient]); gateway != nil {
		trouble, err := here.running(ctx, gateway)
		if errors.Is(err, backend.ErrNoRoom) {
			trouble, _ = backend.SplitError(err)
			err = nil
		}
		if err != nil {
			return err
		}
		if seen.NetworkHere = trouble != ""; seen.NetworkHere {
			seen.Network = trouble
		}
	}
	seen.Network = shorten.Words(seen.Network, maxWords)
	return nil
}

// tenantNamespaceThere returns the name of our tenant namespace on the provider; "" when it does not exist. It also
// works for an account that may read the namespace by name only.
func (p *peering) tenantNamespaceThere(ctx context.Context, provider client.Client) (string, error) {
	namespace, err := tenantNamespace(ctx, provider, p.self.id)
	if apierrors.IsForbidden(err) {
		var usual corev1.Namespace
		err = provider.Get(ctx, client.ObjectKey{Name: tenantNamespaceName(p.self.id)}, &usual)
		namespace = &usual
	}
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return namespace.Name, nil
}

// slicesThere records which of our slices the provider lacks.
func (p *peering) slicesThere(ctx context.Context, provider client.Client, namespace string, here []string,
	seen *backend.Observation) error {
	var found authv1beta1.ResourceSliceList
	err := provider.List(ctx, &found, client.InNamespace(namespace),
		client.MatchingLabels{consts.ReplicationOriginLabel: p.self.id})
	if err != nil {
		return err
	}
	for _, name := range here {
		if !slices.ContainsFunc(found.Items, func(s authv1beta1.ResourceSlice) bool { return s.Name == name }) {
			seen.Absent = append(seen.Absent, name)
		}
	}
	return nil
}

// tenantThere records the state of our Tenant on the provider.
func (p *peering) tenantThere(ctx context.Context, provider client.Client, namespace string,
	seen *backend.Observation) error {
	var found authv1beta1.TenantList
	err := provider.List(ctx, &found, client.InNamespace(namespace),
		client.MatchingLabels{consts.RemoteClusterID: p.self.id})
	if err != nil {
		return err
	}
	if len(found.Items) == 0 {
		seen.Tenant, seen.Message = fleet.RefusingRemoved, "our Tenant is gone there"
		return nil
	}
	tenant := &found.Items[0]
	switch tenant.Spec.TenantCondition {
	case authv1beta1.TenantConditionCordoned:
		seen.Tenant = fleet.RefusingCordoned
	case authv1beta1.TenantConditionDrained:
		seen.Tenant = fleet.RefusingDrained
	default:
		return nil
	}
	seen.Message = fmt.Sprintf("our Tenant %s/%s is %s", tenant.Namespace, tenant.Name, seen.Tenant)
	return nil
}

// ownSide is an error of this cluster's own API server. Such an error proves nothing about a provider.
type ownSide struct{ error }

func (e ownSide) Unwrap() error { return e.error }

// observeError classifies an error of the provider as accessError does, and adds ErrCredentials when the provider does
// not accept our credentials.
func observeError(provider string, err error) error {
	var own ownSide
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return fmt.Errorf("observe provider %s: %w", provider, err)
	case isUnauthorized(err):
		return fmt.Errorf("provider %s does not accept our credentials, or allows them too little: %w: %w", provider,
			accessError("look", err), backend.ErrCredentials)
	default:
		return fmt.Errorf("observe provider %s: %w", provider, accessError("look", err))
	}
}

// Cordon cordons the attempt's Node on our behalf, or removes our cordon.
func (b *Backend) Cordon(ctx context.Context, of fleet.Attempt, cordoned bool) error {
	return b.mark(ctx, of, "cordon", func(node *corev1.Node) bool { return backend.SetCordon(node, cordoned) })
}

// mark changes the attempt's Node. A missing Node is success.
func (b *Backend) mark(ctx context.Context, of fleet.Attempt, what string, change func(*corev1.Node) bool) error {
	a := b.attempt(of)
	if err := a.locate(ctx); err != nil {
		return fmt.Errorf("%s node %s: %w", what, of.ObjectName(), err)
	}
	node, err := a.node(ctx, nil)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s node %s: %w", what, of.ObjectName(), err)
	}
	before := node.DeepCopy()
	if !change(node) {
		return nil
	}
	// The patch fails when CA has tainted the Node since it was read; the next round reads the taint.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(a.local.Patch(ctx, node, patch)); err != nil {
		return fmt.Errorf("%s node %s: %w", what, of.ObjectName(), err)
	}
	return nil
}
