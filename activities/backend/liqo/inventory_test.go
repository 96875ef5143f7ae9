package liqo

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestListReturnsOurAttempts(t *testing.T) {
	t.Parallel()
	replica := accepted("2") // a slice that another cluster's hub has requested from this cluster
	replica.Name, replica.Labels = "lca-g-abc-2-1", with(replica.Labels, map[string]string{
		backend.LabelInstance: "g-abc-2", labelConsumer: "provider1", consts.ReplicationOriginLabel: "provider1"})
	renamed := accepted("2")
	renamed.Name = "copied-by-somebody"
	otherHub := accepted("2")
	otherHub.Name, otherHub.Labels = "lca-g-abc-3-1", with(otherHub.Labels, map[string]string{
		backend.LabelInstance: "g-abc-3", backend.LabelHub: "other"})
	nodeOnly, theirs := readyNode("lca-g-abc-1-2", "2"), readyNode("lca-g-abc-1-3", "3")
	theirs.Annotations[backend.LabelHub] = "other"
	c := newClusters(t, []client.Object{replica, renamed, otherHub, nodeOnly, theirs, removing()}, nil)
	found, err := c.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "lca-g-abc-1-1", found[0].Attempt.ObjectName())
	require.Equal(t, fleet.Found{Attempt: found[0].Attempt, Virtual: true, Terminating: true}, found[0])
	require.Equal(t, fleet.Found{Attempt: found[1].Attempt, Node: true, Ready: true}, found[1])
	require.Equal(t, peer, found[1].Attempt.Provider.ID)

	found, err = c.List(t.Context(), backend.Scope{Group: "another"})
	require.NoError(t, err)
	require.Empty(t, found)
}

// List fails while the API server does not serve one of the kinds, for example because Liqo's CRDs are not installed.
// If List returned an empty list instead, every group would count its nodes as lost.
func TestListFailsWhileAKindIsNotServed(t *testing.T) {
	t.Parallel()
	for _, missing := range []client.ObjectList{&authv1beta1.ResourceSliceList{}, &offloadingv1beta1.VirtualNodeList{},
		&corev1.NodeList{}} {
		c := newClusters(t, peered(stampedNode()...), nil)
		c.local = interceptor.NewClient(c.watch, interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch,
			list client.ObjectList, opts ...client.ListOption) error {
			if reflect.TypeOf(list) == reflect.TypeOf(missing) {
				return apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "404 page not found", 0,
					true)
			}
			return w.List(ctx, list, opts...)
		}})
		_, err := c.List(t.Context(), backend.Scope{})
		require.ErrorContains(t, err, "list attempts", "%T", missing)
	}
}

// An attempt belongs to the provider of its virtual node. A slice of the same name exists in the namespace of another
// provider, as may happen after the restore of a backup. List reads that namespace first, and still names the
// provider of the virtual node.
func TestListNamesTheProviderOfTheVirtualNode(t *testing.T) {
	t.Parallel()
	left := accepted("2")
	left.Namespace, left.Labels = "a-tenant", with(left.Labels, map[string]string{consts.RemoteClusterID: "turin"})
	c := newClusters(t, peered(append(stampedNode(), left)...), nil)
	found, err := c.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, peer, found[0].Attempt.Provider.ID)

	ofProvider, err := c.List(t.Context(), backend.Scope{Provider: peer})
	require.NoError(t, err)
	require.Equal(t, found, ofProvider)
	ofProvider, err = c.List(t.Context(), backend.Scope{Provider: "turin"})
	require.NoError(t, err)
	require.Empty(t, ofProvider)
}

// A Node of an attempt has the label of another provider, and no virtual node exists. The attempt belongs to the
// provider of its slice, and the list of the other provider does not contain it.
func TestListOfAnotherProviderIgnoresAMislabelledNode(t *testing.T) {
	t.Parallel()
	node := readyNode("lca-g-abc-1-1", "1")
	node.Labels[consts.RemoteClusterID] = "turin"
	c := newClusters(t, []client.Object{accepted("2"), node}, nil)
	for provider, n := range map[string]int{peer: 1, "turin": 0} {
		found, err := c.List(t.Context(), backend.Scope{Provider: provider})
		require.NoError(t, err)
		require.Len(t, found, n, provider)
	}
}

// The lists of one provider take the same number of requests with a hundred other peerings.
func TestListsOfOneProviderDoNotReadOthers(t *testing.T) {
	t.Parallel()
	requests := func(others int) int {
		objects := append(stampedNode(), tenantNS(peer, mine()), controlPlane(mine()))
		for n := range others {
			id := fmt.Sprint("other", n)
			objects = append(objects, tenantNS(id, mine()))
		}
		var a asked
		c := newClusters(t, objects, nil)
		c.local = a.of(c.watch, func(client.Object) {})
		found, err := c.List(t.Context(), backend.Scope{Provider: peer})
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.True(t, found[0].Slice && found[0].Virtual && found[0].Node)
		peers, err := c.Peers(t.Context(), peer)
		require.NoError(t, err)
		require.Len(t, peers, 1)
		return len(a.since(0))
	}
	require.Equal(t, requests(0), requests(100))
}

// An attempt counts as terminating when any of its objects is being deleted: its slice, its virtual node or its Node.
func TestListReportsAnAttemptWithATerminatingObject(t *testing.T) {
	t.Parallel()
	for which := range stampedNode() {
		objects := stampedNode()
		now := metav1.Now()
		objects[which].SetDeletionTimestamp(&now)
		objects[which].SetFinalizers([]string{"example.com/held"})
		c := newClusters(t, peered(objects...), nil)
		found, err := c.List(t.Context(), backend.Scope{})
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.True(t, found[0].Terminating, "%T", objects[which])
	}
}

// An account that may write Secrets or Identities in another namespace cannot choose the credentials of our peering.
func TestCredentialsInForeignNamespacesAreIgnored(t *testing.T) {
	t.Parallel()
	bait := &corev1.Secret{ObjectMeta: named("team-a", "anything", mine(), of("provider2"))}
	bait.Annotations = map[string]string{backend.AnnotationCredentials: `{"secretRef":{"namespace":"kube-system","name":"admin","key":"conf"}}`}
	over := &corev1.Secret{ObjectMeta: named("team-a", "over", mine(), of(peer))}
	over.Annotations = bait.Annotations
	identity := controlPlane(mine())
	identity.Namespace, identity.Annotations = "team-a", bait.Annotations
	ns := tenantNS(peer, mine())
	ns.Annotations = map[string]string{backend.AnnotationCredentials: `{"kubeconfigFile":"provider1.kubeconfig"}`}
	c := newClusters(t, []client.Object{bait, over, identity, ns}, nil)
	peers, err := c.Peers(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []fleet.Provider{known()}, peers)
}
