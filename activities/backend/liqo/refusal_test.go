package liqo

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// closedPeering returns our peering after the provider's administrators have set its Tenant to the condition.
func closedPeering(condition authv1beta1.TenantCondition) (here, there []client.Object) {
	here, there = ourPeering()
	for _, object := range there {
		if tenant, ok := object.(*authv1beta1.Tenant); ok {
			tenant.Spec.TenantCondition = condition
		}
	}
	return here, there
}

// A provider has cordoned or drained our Tenant, and we remove the peering. The Tenant stays and records the refusal.
// So a new Establish does not replace it by an active Tenant.
func TestRefusalStaysAfterOurRemoval(t *testing.T) {
	for condition, kind := range map[authv1beta1.TenantCondition]fleet.RefusingKind{
		authv1beta1.TenantConditionCordoned: fleet.RefusingCordoned,
		authv1beta1.TenantConditionDrained:  fleet.RefusingDrained,
	} {
		t.Run(string(condition), func(t *testing.T) {
			here, there := closedPeering(condition)
			c := newClusters(t, here, there)
			requireRefusing(t, kind, c.Establish(prompt(t), provider(), nil))
			for range 2 {
				requireRefusing(t, kind, c.RemovePeering(prompt(t), provider(), nil))
			}
			for _, object := range here {
				require.False(t, exists(t, c.local, object), "%T %s", object, object.GetName())
			}
			for _, object := range there {
				require.NoError(t, c.there.Get(t.Context(), keyOf(object), object))
				require.Equal(t, string(condition), object.GetLabels()[backend.LabelRefused], "%T %s", object, object.GetName())
			}
			require.Equal(t, condition, there[1].(*authv1beta1.Tenant).Spec.TenantCondition)
			peers, err := c.Peers(t.Context(), "")
			require.NoError(t, err)
			require.Empty(t, peers)
			requireRefusing(t, kind, c.Establish(prompt(t), provider(), nil))
			found, err := c.Refusal(t.Context(), provider())
			require.NoError(t, err)
			require.Equal(t, kind, found.Kind)
		})
	}
}

// When the provider ends its refusal, Establish signs the same nonce again and removes our marks.
func TestLiftedRefusalRemovesOurMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, there := closedPeering("")
		for _, object := range there {
			object.SetLabels(with(object.GetLabels(), map[string]string{backend.LabelRefused: "Cordoned"}))
			if nonce, ok := object.(*corev1.Secret); ok {
				nonce.Data = map[string][]byte{"nonce": []byte("n")}
			}
		}
		keypair, _ := keys(t)
		c := newClusters(t, []client.Object{keypair}, there)
		p := c.peering(provider())
		require.NoError(t, p.locate(t.Context()))
		h, err := p.readKeys(t.Context())
		require.NoError(t, err)
		signature, err := signWith(h, "n")
		require.NoError(t, err)
		signed := nonceOn(localNS, signedNonceName, consts.SignedNonceSecretLabelKey, peer, mine())
		signed.Data = map[string][]byte{"nonce": []byte("n"), "signedNonce": signature}
		require.NoError(t, c.local.Create(t.Context(), signed))
		var stage *backend.StageError
		require.ErrorAs(t, c.Establish(soon(t), provider(), nil), &stage)
		require.Equal(t, backend.StageTenant, stage.Stage, "no controller answers the Tenant here")
		for _, object := range there {
			uid := object.GetUID()
			require.NoError(t, c.there.Get(t.Context(), keyOf(object), object))
			require.Equal(t, uid, object.GetUID())
			require.NotContains(t, object.GetLabels(), backend.LabelRefused, "%T %s", object, object.GetName())
		}
		require.Equal(t, signature, there[1].(*authv1beta1.Tenant).Spec.Signature)
	})
}

// The provider refuses us while RemovePeering deletes the Tenant. RemovePeering still finds the refusal.
func TestRefusalDuringRemovalIsFound(t *testing.T) {
	here, there := ourPeering()
	c := newClusters(t, here, there)
	tenant := tenantOf()
	require.NoError(t, c.there.Get(t.Context(), keyOf(tenant), tenant))
	changed := tenant.DeepCopy()
	changed.Spec.TenantCondition = authv1beta1.TenantConditionCordoned
	require.NoError(t, c.there.Update(t.Context(), changed))
	require.Error(t, deleteAsRead(t.Context(), c.there, tenant))
	require.True(t, exists(t, c.there, tenant))
}

// A provider has deleted our Tenant. Establish does not make the Tenant again before RefusedFor has passed. The
// backend records the deletion in an object on the consumer, so this does not depend on the state in Temporal.
func TestRemovedTenantCountsAsRefusal(t *testing.T) {
	for name, foreignNS := range map[string]bool{"our namespace": false, "a namespace that was there": true} {
		t.Run(name, func(t *testing.T) {
			here, there := ourPeering()
			if foreignNS {
				here[0] = tenantNS(peer)
			}
			c := newClusters(t, here, there[:1])
			requireRefusing(t, fleet.RefusingRemoved, c.Establish(prompt(t), provider(), nil))
			requireRefusing(t, fleet.RefusingRemoved, c.RemovePeering(prompt(t), provider(), nil))
			require.False(t, exists(t, c.local, here[1]), "the Identity")
			require.False(t, exists(t, c.local, here[2]), "the nonce")
			require.True(t, exists(t, c.local, here[0]), "the namespace holds the note")
			peers, err := c.Peers(t.Context(), "")
			require.NoError(t, err)
			require.Len(t, peers, 1)
			require.Equal(t, provider().Credentials, peers[0].Credentials)
			require.Equal(t, fleet.RefusingRemoved, peers[0].Refusing.Kind)

			c.down = true
			requireRefusing(t, fleet.RefusingRemoved, c.RemovePeering(prompt(t), provider(), nil))
			c.down = false
			requireRefusing(t, fleet.RefusingRemoved, c.Establish(prompt(t), provider(), nil))
			var note corev1.ConfigMap
			require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: refusedName}, &note))
			until, err := time.Parse(time.RFC3339, note.Data[refusedUntil])
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(c.config.RefusedFor), until, 10*time.Minute)
			note.Data[refusedUntil] = time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
			require.NoError(t, c.local.Update(t.Context(), &note))
			found, err := c.Refusal(t.Context(), provider())
			require.NoError(t, err)
			require.Nil(t, found, "its time is over")
			require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
			require.Equal(t, foreignNS, exists(t, c.local, here[0]))
			peers, err = c.Peers(t.Context(), "")
			require.NoError(t, err)
			require.Empty(t, peers)
		})
	}
}

// A user has removed the provider's label from the record of a refusal, in a namespace that is not ours. Peers still
// names the provider, because the namespace names it.
func TestRefusalWithoutALabelNamesItsProvider(t *testing.T) {
	here, there := ourPeering()
	here[0] = tenantNS(peer)
	c := newClusters(t, here, there[:1])
	requireRefusing(t, fleet.RefusingRemoved, c.RemovePeering(prompt(t), provider(), nil))
	var record corev1.ConfigMap
	require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: refusedName}, &record))
	delete(record.Labels, consts.RemoteClusterID)
	require.NoError(t, c.local.Update(t.Context(), &record))
	peers, err := c.Peers(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, peers, 1)
	require.Equal(t, peer, peers[0].ID)
	require.NotNil(t, peers[0].Refusing)
}

// Two states look like a deleted Tenant but do not count as a refusal: our own interrupted removal, and a peering of
// another owner.
func TestInterruptedRemovalIsNoRefusal(t *testing.T) {
	here, there := ourPeering()
	for name, objects := range map[string][]client.Object{
		"no Identity":        {here[0], here[2]},
		"Identity of others": {here[0], controlPlane()},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClusters(t, objects, there[:1])
			found, err := c.Refusal(t.Context(), provider())
			require.NoError(t, err)
			require.Nil(t, found)
		})
	}
}

// A provider refuses this cluster as a whole, so our slice is denied or gets no answer. Join reports the provider's
// refusal.
func TestJoinReportsTheProvidersRefusal(t *testing.T) {
	denied, silent := accepted("2"), accepted("2")
	denied.Status.Conditions[1].Status = authv1beta1.ResourceSliceConditionDenied
	silent.Status = authv1beta1.ResourceSliceStatus{}
	closed := tenantOf(mine())
	closed.Spec.TenantCondition = authv1beta1.TenantConditionCordoned
	for name, test := range map[string]struct {
		slice *authv1beta1.ResourceSlice
		there []client.Object
		kind  fleet.RefusingKind
	}{
		"denied":           {denied, []client.Object{tenantNS(me), closed}, fleet.RefusingCordoned},
		"no answer":        {silent, []client.Object{tenantNS(me), closed}, fleet.RefusingCordoned},
		"Tenant is gone":   {silent, nil, fleet.RefusingRemoved},
		"denied, and gone": {denied, nil, fleet.RefusingRemoved},
	} {
		t.Run(name, func(t *testing.T) {
			here := []client.Object{test.slice.DeepCopy(), tenantNS(peer, mine()), controlPlane(mine()), controlPlaneSecret(),
				established()}
			c := newClusters(t, here, copiesOf(test.there))
			_, err := c.Join(prompt(t), spec(), nil)
			requireRefusing(t, test.kind, err)
		})
	}
}

func copiesOf(objects []client.Object) (copied []client.Object) {
	for _, object := range objects {
		copied = append(copied, object.DeepCopyObject().(client.Object))
	}
	return copied
}

func requireRefusing(t *testing.T, kind fleet.RefusingKind, err error) {
	t.Helper()
	require.ErrorIs(t, err, backend.ErrDenied)
	var refusing *backend.RefusingError
	require.True(t, errors.As(err, &refusing), "%v", err)
	require.Equal(t, kind, refusing.Kind)
	require.NotEmpty(t, refusing.Reason)
}
