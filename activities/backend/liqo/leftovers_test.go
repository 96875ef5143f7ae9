package liqo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// signed returns the labels of this cluster's objects on a provider. The objects of a clone of this cluster have
// other labels.
func signed() map[string]string {
	return with(mine(), map[string]string{labelConsumerUID: "uid-of-" + me})
}

// leftSlice returns the provider's copy of an attempt's slice.
func leftSlice(labels ...map[string]string) *authv1beta1.ResourceSlice {
	slice := &authv1beta1.ResourceSlice{ObjectMeta: named(remoteNS, "lca-g-abc-1-1", append([]map[string]string{{
		backend.LabelGroup: "g", backend.LabelInstance: "g-abc-1", backend.LabelAttempt: "1",
		consts.ReplicationOriginLabel: me}}, labels...)...)}
	slice.UID = "slice"
	return slice
}

func leftTenant(labels ...map[string]string) *authv1beta1.Tenant {
	tenant := tenantOf(labels...)
	tenant.UID = "tenant"
	return tenant
}

// Leftovers returns the objects that carry our labels and have no counterpart on the consumer. If another cluster
// with the same Liqo id made an object, Leftovers marks the object as foreign.
func TestLeftoversAreObjectsWithoutACounterpart(t *testing.T) {
	const slice, tenant = "ResourceSlice liqo-tenant-consumer/lca-g-abc-1-1", "Tenant liqo-tenant-consumer/consumer"
	clone := map[string]string{labelConsumerUID: "another"}
	hub := map[string]string{backend.LabelHub: "another"}
	bare := accepted("2")
	bare.Labels = nil
	refused := map[string]string{backend.LabelRefused: "Cordoned"}
	for name, c := range map[string]struct {
		here, there []client.Object
		want        map[string]bool // object -> whether it is foreign
	}{
		"nothing": {nil, nil, nil},
		"all has its counterpart": {peered(accepted("2")), []client.Object{tenantNS(me, signed()), leftTenant(signed()),
			leftSlice(signed())}, nil},
		"one that has lost its labels is one": {peered(bare), []client.Object{tenantNS(me, signed()), leftSlice(signed())},
			nil},
		"a slice is left": {peered(), []client.Object{tenantNS(me, signed()), leftTenant(signed()), leftSlice(signed())},
			map[string]bool{slice: false}},
		"all is left": {nil, []client.Object{tenantNS(me, signed()), leftTenant(signed()), leftSlice(signed())},
			map[string]bool{slice: false, tenant + ", Namespace /liqo-tenant-consumer": false}},
		"their namespace stays": {nil, []client.Object{tenantNS(me), leftTenant(signed())}, map[string]bool{tenant: false}},
		"a gateway is left": {nil, []client.Object{tenantNS(me), netObject(networking.WithKind(kindServer), remoteNS, me,
			with(signed(), of(me)), map[string]any{})},
			map[string]bool{"GatewayServer liqo-tenant-consumer/consumer": false}},
		"of a clone": {nil, []client.Object{tenantNS(me), leftTenant(signed(), clone), leftSlice(signed(), clone)},
			map[string]bool{slice: true, tenant: true}},
		"does not say of whom": {nil, []client.Object{tenantNS(me), leftTenant(mine())}, map[string]bool{tenant: true}},
		"of another hub": {nil, []client.Object{tenantNS(me), leftTenant(signed(), hub), leftSlice(signed(), hub)},
			nil},
		"of others": {nil, []client.Object{tenantNS(me), leftTenant()}, nil},
		"a refusal": {nil, []client.Object{tenantNS(me, signed(), refused),
			leftTenant(signed(), refused)}, nil},
		"of others' peering here": {peered(), []client.Object{tenantNS(me), leftTenant(signed())}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := newClusters(t, c.here, c.there)
			left, err := clusters.Leftovers(prompt(t), known())
			require.NoError(t, err)
			got := map[string]bool{}
			for _, o := range left {
				got[o.Object] = o.Foreign
				require.Equal(t, known(), o.Attempt.Provider)
			}
			require.Len(t, got, len(c.want), "%v", got)
			for what, foreign := range c.want {
				require.Contains(t, got, what)
				require.Equal(t, foreign, got[what], what)
			}
		})
	}
}

// RemoveLeftover removes a slice only in the state in which it was listed. It keeps a slice that was replaced, that
// belongs to another cluster, or that now has a counterpart on the consumer.
func TestRemoveLeftoverRemovesOnlyTheListedSlice(t *testing.T) {
	o := fleet.Orphan{Attempt: someAttempt(1), UID: "slice", Object: "the slice"}
	anew := leftSlice(signed())
	anew.UID = "another"
	for name, c := range map[string]struct {
		here  []client.Object
		slice *authv1beta1.ResourceSlice
		stays bool
	}{
		"as listed":      {nil, leftSlice(signed()), false},
		"created again":  {nil, anew, true},
		"of a clone":     {nil, leftSlice(signed(), map[string]string{labelConsumerUID: "another"}), true},
		"not ours":       {nil, leftSlice(), true},
		"a counterpart":  {peered(accepted("2")), leftSlice(signed()), true},
		"of another hub": {nil, leftSlice(signed(), map[string]string{backend.LabelHub: "another"}), true},
	} {
		t.Run(name, func(t *testing.T) {
			certificate := &corev1.Secret{ObjectMeta: named(remoteNS, "liqo-remote-certificate-lca-g-abc-1-1", of(me))}
			clusters := newClusters(t, c.here, []client.Object{tenantNS(me), c.slice, certificate})
			require.NoError(t, clusters.RemoveLeftover(prompt(t), o))
			require.Equal(t, c.stays, exists(t, clusters.there, c.slice))
			require.Equal(t, c.stays, exists(t, clusters.there, certificate))
		})
	}
	clusters := newClusters(t, nil, nil)
	require.NoError(t, clusters.RemoveLeftover(prompt(t), o), "gone")
	clusters.down = true
	_, err := clusters.Leftovers(prompt(t), known())
	require.ErrorIs(t, err, backend.ErrUnreachable)
	require.ErrorIs(t, clusters.RemoveLeftover(prompt(t), o), backend.ErrUnreachable)
}

// The removal of a peering also removes the provider's copy of a NamespaceMap that no longer exists on the consumer.
// If a slice of a clone of this cluster exists, RemovePeering keeps everything and returns ErrInUse.
func TestLeftoverPeeringIsRemoved(t *testing.T) {
	copied := &offloadingv1beta1.NamespaceMap{ObjectMeta: named(remoteNS, "consumer",
		map[string]string{consts.ReplicationOriginLabel: me})}
	theirs := &offloadingv1beta1.NamespaceMap{ObjectMeta: named(remoteNS, "provider1", of(me))}
	nonce := &corev1.Secret{ObjectMeta: named(remoteNS, nonceName, signed(), of(me),
		map[string]string{consts.NonceSecretLabelKey: "true"})}
	c := newClusters(t, nil, []client.Object{tenantNS(me), leftTenant(signed()), nonce, copied, theirs})
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	for _, gone := range []client.Object{leftTenant(), nonce, copied} {
		require.False(t, exists(t, c.there, gone), "%T", gone)
	}
	require.True(t, exists(t, c.there, theirs))
	require.True(t, exists(t, c.there, tenantNS(me)))

	clone := leftSlice(signed(), map[string]string{labelConsumerUID: "another"})
	c = newClusters(t, nil, []client.Object{tenantNS(me), leftTenant(signed()), clone})
	err := c.RemovePeering(soon(t), provider(), nil)
	require.True(t, errors.Is(err, backend.ErrInUse), "%v", err)
	require.True(t, exists(t, c.there, clone))
	require.True(t, exists(t, c.there, leftTenant()))
}

// A pass of Establish waits for a gateway, but the consumer has no free capacity for the gateway's pod. The pass
// reports this and names the pod.
func TestEstablishReportsMissingRoomForTheGateway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, liqo := withLiqo(t, []client.Object{unschedulable("gw-" + peer)}, nil)
		liqo.idle[kindClient] = true
		err := connecting(soon(t), c, networked("", ""), nil)
		require.ErrorIs(t, err, backend.ErrNoRoom)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var at *backend.StageError
		require.ErrorAs(t, err, &at)
		require.Equal(t, backend.StageGatewayClient, at.Stage)
		require.Contains(t, at.Message, noRoom("gw-"+peer).Message)
	})
}
