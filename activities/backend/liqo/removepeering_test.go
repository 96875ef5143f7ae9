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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func nonceOn(namespace, name, label, cluster string, labels ...map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(namespace, name, append(labels, of(cluster),
		map[string]string{label: "true"})...)}
}

// ourPeering returns all objects that Establish makes, and objects that Liqo makes for them. Liqo's objects have no
// finalizers, so they disappear immediately.
func ourPeering() (here, there []client.Object) {
	return []client.Object{
			tenantNS(peer, mine()), controlPlane(mine()),
			nonceOn(localNS, signedNonceName, consts.SignedNonceSecretLabelKey, peer, mine()),
		}, []client.Object{
			tenantNS(me, mine()), tenantOf(mine()),
			nonceOn(remoteNS, nonceName, consts.NonceSecretLabelKey, me, mine()),
		}
}

func TestRemovePeeringRemovesOurObjects(t *testing.T) {
	t.Parallel()
	here, there := ourPeering()
	there[0] = tenantNS(me) // the namespace is not ours and stays
	certificate := &corev1.Secret{ObjectMeta: named(remoteNS, certificatePrefix+"lca-g-abc-1-1")}
	c := newClusters(t, here, append(there, certificate))
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	require.False(t, exists(t, c.there, certificate))
	for _, object := range here {
		require.False(t, exists(t, c.local, object), "%T %s", object, object.GetName())
	}
	for _, object := range there[1:] {
		require.False(t, exists(t, c.there, object), "%T %s", object, object.GetName())
	}
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil), "twice")
}

// A process ended at any point of Establish or of a removal. RemovePeering removes the objects that exist. It removes
// last the object that Establish makes first.
func TestRemovePeeringRemovesAnIncompletePeering(t *testing.T) {
	t.Parallel()
	for cut := range 7 {
		here, there := ourPeering()
		steps := []struct {
			object client.Object
			there  bool
		}{{here[0], false}, {there[0], true}, {there[2], true}, {here[2], false}, {there[1], true}, {here[1], false}}
		here, there = nil, nil
		for _, made := range steps[:cut] {
			if made.there {
				there = append(there, made.object)
			} else {
				here = append(here, made.object)
			}
		}
		c := newClusters(t, here, there)
		require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
		require.Empty(t, dump(t, c), "cut after %d objects", cut)
	}
}

func TestRemovePeeringLeavesForeignPeeringsAlone(t *testing.T) {
	t.Parallel()
	other := map[string]string{backend.LabelManagedBy: backend.ManagedBy, backend.LabelHub: "default",
		labelConsumer: "provider1"}
	for name, theirs := range map[string]map[string]string{"by hand": nil, "by another cluster's hub": other} {
		t.Run(name, func(t *testing.T) {
			c := newClusters(t,
				[]client.Object{tenantNS(peer, theirs), controlPlane(theirs), controlPlaneSecret(),
					nonceOn(localNS, signedNonceName, consts.SignedNonceSecretLabelKey, peer, theirs)},
				[]client.Object{tenantNS(me, theirs), tenantOf(theirs), nonceOn(remoteNS, nonceName, consts.NonceSecretLabelKey, me,
					theirs)})
			before := dump(t, c)
			require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
			require.Equal(t, before, dump(t, c))
			peers, err := c.Peers(t.Context(), "")
			require.NoError(t, err)
			require.Empty(t, peers)
		})
	}
}

func TestRemovePeeringReportsForeignUse(t *testing.T) {
	t.Parallel()
	outgoingSlice := &authv1beta1.ResourceSlice{ObjectMeta: named(localNS, "theirs", outgoing(peer))}
	byHand := &offloadingv1beta1.VirtualNode{ObjectMeta: named("default", "theirs", of(peer))}
	reverse := &authv1beta1.Tenant{ObjectMeta: named(localNS, peer, of(peer))}
	remote := &authv1beta1.ResourceSlice{ObjectMeta: named(remoteNS, "theirs", of(me),
		map[string]string{consts.ReplicationOriginLabel: me})}
	for name, test := range map[string]struct{ here, there client.Object }{
		"a foreign slice":                     {here: outgoingSlice},
		"a virtual node without a slice":      {here: byHand},
		"the other direction":                 {here: reverse},
		"a slice only the provider still has": {there: remote},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := ourPeering()
			if test.here != nil {
				here = append(here, test.here)
			}
			if test.there != nil {
				there = append(there, test.there)
			}
			c := newClusters(t, here, there)
			before := dump(t, c)
			require.ErrorIs(t, c.RemovePeering(prompt(t), provider(), nil), backend.ErrInUse)
			require.Equal(t, before, dump(t, c), "nothing is changed")
			if test.here != nil {
				c.down = true
				require.ErrorIs(t, c.RemovePeering(prompt(t), provider(), nil), backend.ErrInUse, "it takes no provider to know")
			}
		})
	}
}

// A slice is created after RemovePeering has first checked whether the peering is in use. RemovePeering keeps the
// Identity.
func TestIdentityStaysWhenASliceIsCreatedDuringRemoval(t *testing.T) {
	t.Parallel()
	identity := controlPlane(mine())
	c := newClusters(t, []client.Object{tenantNS(peer), identity, controlPlaneSecret(), established()}, nil)
	p := c.peering(provider())
	require.NoError(t, p.locate(t.Context()))
	require.NoError(t, p.inUse(t.Context()))
	require.NoError(t, c.local.Create(t.Context(), accepted("2")))
	require.ErrorIs(t, p.deleteIdentity(t.Context(), identity), backend.ErrInUse)
	require.True(t, exists(t, c.local, identity))
}

// A slice of ours exists only on the provider. RemovePeering removes this slice, and then the Tenant.
func TestRemovePeeringRemovesOrphanedSlice(t *testing.T) {
	t.Parallel()
	here, there := ourPeering()
	orphan := &authv1beta1.ResourceSlice{ObjectMeta: named(remoteNS, "lca-g-abc-1-1", of(me), mine(),
		map[string]string{consts.ReplicationOriginLabel: me})}
	c := newClusters(t, here, append(there, orphan))
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	require.Empty(t, dump(t, c))
}

// RemovePeering keeps a namespace that existed before our peering, or that contains an object of another owner.
func TestRemovePeeringKeepsForeignNamespaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		moved  client.Object
		unread string
	}{
		"a Secret":                 {moved: nonceOn(remoteNS, "by-hand", consts.SignedNonceSecretLabelKey, me)},
		"an Identity, all we read": {&authv1beta1.Identity{ObjectMeta: named(remoteNS, "by-hand")}, "VirtualNodeList"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				here, there := ourPeering()
				here[0] = tenantNS(peer)
				c := newClusters(t, here, append(there, tc.moved))
				c.there = interceptor.NewClient(c.there.(client.WithWatch), interceptor.Funcs{
					List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
						if found, ok := l.(*metav1.PartialObjectMetadataList); ok && found.Kind == tc.unread {
							return errors.New("not today")
						}
						return w.List(ctx, l, opts...)
					},
				})
				require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
				require.True(t, exists(t, c.local, here[0]))
				require.True(t, exists(t, c.there, there[0]))
				require.True(t, exists(t, c.there, tc.moved))
				require.False(t, exists(t, c.there, tenantOf()))
				require.False(t, exists(t, c.local, controlPlane()))
			})
		})
	}
}

func TestRemovePeeringWaitsForAnUnreachableProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := ourPeering()
		c := newClusters(t, here, there)
		c.down = true
		before := dump(t, c)
		err := c.RemovePeering(soon(t), provider(), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageIdentityGone, stage.Stage)
		require.ErrorIs(t, err, backend.ErrUnreachable)
		require.Equal(t, before, dump(t, c), "an Identity without its Tenant could not be cleared away")
		c.down = false
		require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	})
}

// A provider is unreachable. If Establish has left no object of ours on the consumer, RemovePeering succeeds without
// the provider, because nothing was made there. If Establish has left an object, RemovePeering does not give up.
func TestIncompletePeeringIsRemovedWithoutItsProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, []client.Object{tenantNS(peer)}, nil)
		c.down = true
		require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
		require.Greater(t, c.opens, 1, "it is tried for a while")

		c = newClusters(t, []client.Object{tenantNS(peer), nonceOn(localNS, signedNonceName, consts.SignedNonceSecretLabelKey,
			peer, mine())}, nil)
		c.down = true
		require.ErrorIs(t, c.RemovePeering(soon(t), provider(), nil), backend.ErrUnreachable, "this one was begun")
	})
}
