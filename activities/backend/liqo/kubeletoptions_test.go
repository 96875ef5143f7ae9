package liqo

import (
	"testing"
	"testing/synctest"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func optionsOf(namespace, name, image string) *offloadingv1beta1.VkOptionsTemplate {
	return &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: named(namespace, name),
		Spec: offloadingv1beta1.VkOptionsTemplateSpec{ContainerImage: image, ExtraArgs: []string{"--v=4"}}}
}

// An offer names a VkOptionsTemplate in Liqo's namespace. The provider's nodes run with this template, with or without
// a network.
func TestNodeUsesTheOffersKubeletOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for mode, want := range map[fleet.NetworkMode]*corev1.ObjectReference{
			fleet.NetworkGateway: reference("liqo", "small"),
			fleet.NetworkNone:    reference(localNS, networklessOptions),
		} {
			c := newClusters(t, peered(accepted("2"), sliceIdentity(), optionsOf("liqo", standardOptions, "virtual-kubelet:1"),
				optionsOf("liqo", "small", "virtual-kubelet:2")), nil)
			s := spec()
			s.Labels, s.Attempt.Provider = nil, provider()
			s.Attempt.Provider.Network = &fleet.Network{Mode: mode, Options: []byte(`{"virtualKubelet":"small"}`)}
			_, err := c.Join(soon(t), s, nil)
			require.Error(t, err, "no virtual kubelet answers")
			var virtual offloadingv1beta1.VirtualNode
			require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: "lca-g-abc-1-1"}, &virtual))
			require.Equal(t, want, virtual.Spec.VkOptionsTemplateRef)
			var named offloadingv1beta1.VkOptionsTemplate
			require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: want.Namespace, Name: want.Name}, &named))
			require.Equal(t, "virtual-kubelet:2", named.Spec.ContainerImage)

			s.Attempt.Provider.Network.Options = []byte(`{"virtualKubelet":"large"}`)
			c = newClusters(t, peered(accepted("2"), sliceIdentity()), nil)
			_, err = c.Join(soon(t), s, nil)
			require.ErrorIs(t, err, backend.ErrInvalid)
			require.ErrorContains(t, err, "there is no VkOptionsTemplate liqo/large, which the offer names as virtualKubelet")
			require.False(t, exists(t, c.local, running()))
		}
	})
}

// networkless runs a Join on a provider without a network. Liqo's own VkOptionsTemplate and the given objects exist.
func networkless(t *testing.T, there ...client.Object) (*clusters, error) {
	c := newClusters(t, peered(append(there, accepted("2"), sliceIdentity())...), nil)
	s := spec()
	s.Labels, s.Attempt.Provider = nil, provider()
	_, err := c.Join(soon(t), s, nil)
	return c, err
}

// A node without a network runs with the current options of Liqo's own VkOptionsTemplate, also after an upgrade of
// Liqo. One option differs: the addresses of the node's pods do not become endpoints of this cluster's Services.
func TestNodeWithoutNetworkUsesCurrentOptions(t *testing.T) {
	t.Parallel()
	for name, there := range map[string][]client.Object{
		"first":         nil,
		"after upgrade": {optionsOf(localNS, networklessOptions, "virtual-kubelet:1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := networkless(t, append(there, optionsOf("liqo", standardOptions, "virtual-kubelet:2"))...)
				var stage *backend.StageError
				require.ErrorAs(t, err, &stage)
				require.Equal(t, backend.StageVirtualKubelet, stage.Stage, "%v", err)
				var virtual offloadingv1beta1.VirtualNode
				require.NoError(t, c.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: "lca-g-abc-1-1"}, &virtual))
				require.True(t, *virtual.Spec.DisableNetworkCheck)
				require.Equal(t, &corev1.ObjectReference{APIVersion: "offloading.liqo.io/v1beta1", Kind: "VkOptionsTemplate",
					Namespace: localNS, Name: networklessOptions}, virtual.Spec.VkOptionsTemplateRef)
				ours := optionsOf(localNS, networklessOptions, "")
				require.NoError(t, c.local.Get(t.Context(), client.ObjectKeyFromObject(ours), ours))
				require.Equal(t, "virtual-kubelet:2", ours.Spec.ContainerImage)
				require.Equal(t, []string{"--v=4", withoutIPReflection}, ours.Spec.ExtraArgs)
			})
		})
	}
}

func TestJoinNeedsLiqosStandardOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := networkless(t)
		require.ErrorContains(t, err, "read VkOptionsTemplate liqo/virtual-kubelet-default, which Liqo's chart installs")
		require.False(t, exists(t, c.local, running()))
	})
}

// RemovePeering also removes our VkOptionsTemplate from a tenant namespace that is not ours. It keeps the template
// while a virtual node still names it.
func TestRemovePeeringRemovesTheOptions(t *testing.T) {
	t.Parallel()
	options := optionsOf(localNS, networklessOptions, "virtual-kubelet:1")
	here, there := ourPeering()
	here[0] = tenantNS(peer)
	c := newClusters(t, append(here, options), there)
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	require.False(t, exists(t, c.local, options))

	theirs := &offloadingv1beta1.VirtualNode{ObjectMeta: named(localNS, "theirs")}
	theirs.Spec.VkOptionsTemplateRef = &corev1.ObjectReference{Name: networklessOptions}
	here, there = ourPeering()
	here[0] = tenantNS(peer)
	c = newClusters(t, append(here, options, theirs), there)
	require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	require.True(t, exists(t, c.local, options))
}

// The copy of the options keeps fields that only a later Liqo knows, such as a nodeSelector of the virtual kubelet
// (liqotech/liqo#3367).
func TestCopyOfOptionsKeepsUnknownFields(t *testing.T) {
	t.Parallel()
	standard := newOptions()
	standard.SetName(standardOptions)
	standard.Object["spec"] = map[string]any{"extraArgs": []any{"--a"}, "replicas": int64(2),
		"nodeSelector": map[string]any{"pool": "system"}}
	copied, err := withoutNetwork(standard, "liqo-tenant-milan")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"extraArgs": []any{"--a", withoutIPReflection}, "replicas": int64(2),
		"nodeSelector": map[string]any{"pool": "system"}}, copied.Object["spec"])
	require.Equal(t, []any{"--a"}, standard.Object["spec"].(map[string]any)["extraArgs"], "the original is unchanged")
	require.Equal(t, "liqo-tenant-milan", copied.GetNamespace())
}

// reference returns the reference to a VkOptionsTemplate.
func reference(namespace, name string) *corev1.ObjectReference {
	options := newOptions()
	options.SetNamespace(namespace)
	options.SetName(name)
	return referenceTo(options)
}
