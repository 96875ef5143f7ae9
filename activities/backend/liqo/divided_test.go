package liqo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// A clusterSelector would select only one of two nodes of a provider, because their labels differ. Join does not make
// the second node.
func TestJoinRefusesWhenASelectorDividesTheProvider(t *testing.T) {
	t.Parallel()
	other := func(id, color string) *offloadingv1beta1.VirtualNode {
		return &offloadingv1beta1.VirtualNode{ObjectMeta: named("liqo-tenant-"+id, "another-"+id, of(id)),
			Spec: offloadingv1beta1.VirtualNodeSpec{Labels: map[string]string{"color": color}}}
	}
	offloading := func(key string, values ...string) *offloadingv1beta1.NamespaceOffloading {
		o := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: named("ml", "offloading")}
		if key != "" {
			o.Spec.ClusterSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}}
		}
		return o
	}
	for name, c := range map[string]struct {
		objects []client.Object
		divided bool
	}{
		"selects the other alone":   {[]client.Object{other(peer, "theirs"), offloading("color", "theirs")}, true},
		"selects the new one alone": {[]client.Object{other(peer, "theirs"), offloading("color", "ours")}, true},
		"selects both": {[]client.Object{other(peer, "theirs"),
			offloading("color", "ours", "theirs")}, false},
		"selects neither":             {[]client.Object{other(peer, "theirs"), offloading("color", "red")}, false},
		"selects all":                 {[]client.Object{other(peer, "theirs"), offloading("")}, false},
		"cannot be read":              {[]client.Object{other(peer, "theirs"), offloading("not a key", "x")}, false},
		"the other is somewhere else": {[]client.Object{other("provider2", "theirs"), offloading("color", "theirs")}, false},
		"the other is like it":        {[]client.Object{other(peer, "ours"), offloading("color", "ours")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := newClusters(t, c.objects, nil)
			j := &join{attempt: clusters.attempt(someAttempt(1))}
			virtual := other(peer, "ours")
			virtual.Name = "lca-g-abc-1-1"
			there, err := j.virtualThere(t.Context())
			require.NoError(t, err)
			err = j.undivided(t.Context(), there, virtual)
			if !c.divided {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, backend.ErrConflict)
			require.ErrorContains(t, err, "NamespaceOffloading ml/offloading selects only one of the nodes another-provider1 "+
				"and lca-g-abc-1-1")
		})
	}
}

// aside returns another virtual node on the provider, and a NamespaceOffloading. The clusterSelector of the
// NamespaceOffloading selects our node but not the other node.
func aside() (theirs *offloadingv1beta1.VirtualNode, picky *offloadingv1beta1.NamespaceOffloading) {
	theirs = &offloadingv1beta1.VirtualNode{ObjectMeta: named(localNS, "another", of(peer))}
	picky = &offloadingv1beta1.NamespaceOffloading{ObjectMeta: named("ml", "offloading")}
	picky.Spec.ClusterSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "color", Operator: corev1.NodeSelectorOpExists}}}}
	return theirs, picky
}

// Join checks the clusterSelectors twice: while it waits for the provider's answer, and before it makes the virtual
// node.
func TestJoinChecksSelectorsWhileItWaits(t *testing.T) {
	t.Parallel()
	answered := accepted("3")
	delete(answered.Status.NodeLabels, "color")
	waits := answered.DeepCopy()
	waits.Status.Conditions = nil
	for stage, slice := range map[backend.Stage]*authv1beta1.ResourceSlice{
		backend.StageVirtualKubelet: answered, backend.StageSliceAuth: waits,
	} {
		theirs, picky := aside()
		c := newClusters(t, peered(slice, sliceIdentity(), theirs, picky), nil)
		_, err := c.Join(prompt(t), spec(), nil)
		require.ErrorIs(t, err, backend.ErrConflict)
		var at *backend.StageError
		require.ErrorAs(t, err, &at)
		require.Equal(t, stage, at.Stage)
		require.False(t, exists(t, c.local, running()))
		require.True(t, exists(t, c.local, theirs))
	}
}

// Join checks the clusterSelectors while it waits for the provider. After a long wait it checks them again.
func TestJoinChecksSelectorsAgainAfterALongWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		theirs, picky := aside()
		slice := accepted("3")
		delete(slice.Status.NodeLabels, "color")
		c := newClusters(t, peered(slice, theirs), nil)
		asked := time.Time{} // the time at which Join first reads the slice's kubeconfig
		c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
			Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object,
				opts ...client.GetOption) error {
				switch {
				case key.Name != sliceIdentity().Name:
				case asked.IsZero():
					asked = time.Now()
					require.NoError(t, w.Create(ctx, picky))
				case time.Since(asked) >= allowedFor && !exists(t, w, sliceIdentity()):
					require.NoError(t, w.Create(ctx, sliceIdentity()))
				}
				return w.Get(ctx, key, o, opts...)
			},
		})
		_, err := c.Join(prompt(t), spec(), nil)
		require.ErrorIs(t, err, backend.ErrConflict)
		require.False(t, exists(t, c.local, running()))
	})
}
