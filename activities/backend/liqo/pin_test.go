package liqo

import (
	"context"
	"testing"
	"testing/synctest"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// pinnedPeering returns clusters with our peering. The peering pins the given certificate authority of the provider's
// API server.
func pinnedPeering(t *testing.T, authority *testkit.Certificate) *clusters {
	t.Helper()
	here, there := ourPeering()
	identity := here[1].(*authv1beta1.Identity)
	identity.Annotations = map[string]string{annotationPin: fingerprint(authority)}
	return newClusters(t, here, there)
}

func fingerprint(authority *testkit.Certificate) string {
	return authoritiesOf(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: authority.PEM()}})
}

// leadTo makes the credentials lead to a cluster whose API server has that certificate authority.
func (c *clusters) leadTo(cluster client.Client, authority string) {
	c.open = func(context.Context, fleet.Credentials) (client.Client, error) {
		return pinned{Client: cluster, authorities: authority}, nil
	}
}

// A cluster claims the provider's id. If a call of the backend reaches this cluster, the call does not remove our
// peering, does not connect our Liqo to this cluster, and does not count our slice as gone.
func TestClusterThatClaimsAProvidersIDIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, liar := testkit.NewAuthority(t), testkit.NewAuthority(t)
		c := pinnedPeering(t, honest)
		real := c.there
		impostor := newClusters(t, nil, []client.Object{tenantNS(me, mine()), tenantOf(mine())}).there
		c.leadTo(impostor, fingerprint(liar))
		before := dump(t, c)
		for name, verb := range map[string]func(context.Context) error{
			"RemovePeering": func(ctx context.Context) error { return c.RemovePeering(ctx, provider(), nil) },
			"Establish":     func(ctx context.Context) error { return c.Establish(ctx, provider(), nil) },
			"Refusal": func(ctx context.Context) error {
				_, err := c.Refusal(ctx, provider())
				return err
			},
			"Observe": func(ctx context.Context) error {
				_, err := c.Observe(ctx, provider())
				return err
			},
		} {
			err := verb(soon(t))
			require.ErrorIs(t, err, backend.ErrInvalid, name)
			require.ErrorContains(t, err, "offers repin provider1", name)
		}
		require.Equal(t, before, dump(t, c))

		c.leadTo(real, fingerprint(honest))
		require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
		require.Empty(t, dump(t, c))
	})
}

// A provider was rebuilt and has another certificate authority. After Repin the backend accepts it.
func TestRepinAcceptsARebuiltProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := testkit.NewAuthority(t), testkit.NewAuthority(t)
		c := pinnedPeering(t, before)
		c.leadTo(c.there, fingerprint(after))
		require.ErrorIs(t, c.RemovePeering(soon(t), provider(), nil), backend.ErrInvalid)
		forgot, err := c.Repin(t.Context(), peer)
		require.NoError(t, err)
		require.True(t, forgot)
		forgot, err = c.Repin(t.Context(), peer)
		require.NoError(t, err)
		require.False(t, forgot, "twice")
		require.NoError(t, c.RemovePeering(prompt(t), provider(), nil))
	})
}

// A provider was rebuilt and has no Tenant of ours. After Repin the backend does not count the missing Tenant as a
// refusal.
func TestMissingTenantAfterRebuildIsNoRefusal(t *testing.T) {
	c := pinnedPeering(t, testkit.NewAuthority(t))
	rebuilt := newClusters(t, nil, nil).there
	c.leadTo(rebuilt, fingerprint(testkit.NewAuthority(t)))
	_, err := c.Repin(t.Context(), peer)
	require.NoError(t, err)
	found, err := c.Refusal(t.Context(), provider())
	require.NoError(t, err)
	require.Nil(t, found)
}

// The first peering records the provider's certificate authority in the Identity. Only an operator's request changes
// this record.
func TestIdentityKeepsItsAuthority(t *testing.T) {
	authority := testkit.NewAuthority(t)
	keypair, _ := keys(t)
	c := newClusters(t, []client.Object{keypair, tenantNS(peer, mine())}, nil)
	p := c.peering(provider())
	require.NoError(t, p.locate(t.Context()))
	p.remote.authorities = fingerprint(authority)
	tenant := tenantOf(mine())
	tenant.Status = authv1beta1.TenantStatus{TenantNamespace: remoteNS,
		AuthParams: &authv1beta1.AuthParams{APIServer: "https://real.example:6443", CA: []byte("real")}}
	_, _, err := p.ensureIdentity(t.Context(), tenant, handshake{})
	require.NoError(t, err)
	identity := controlPlane()
	require.NoError(t, c.local.Get(t.Context(), keyOf(identity), identity))
	require.Equal(t, fingerprint(authority), identity.Annotations[annotationPin])

	tenant.Status.AuthParams = &authv1beta1.AuthParams{APIServer: "https://evil.example:6443", CA: []byte("evil"),
		AwsConfig: &authv1beta1.AwsConfig{}}
	_, _, err = p.ensureIdentity(t.Context(), tenant, handshake{})
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.NoError(t, c.local.Get(t.Context(), keyOf(identity), identity))
	require.Equal(t, "https://real.example:6443", identity.Spec.AuthParams.APIServer)

	_, err = c.Repin(t.Context(), peer)
	require.NoError(t, err)
	_, _, err = p.ensureIdentity(t.Context(), tenant, handshake{})
	require.NoError(t, err)
	require.NoError(t, c.local.Get(t.Context(), keyOf(identity), identity))
	require.Equal(t, "https://evil.example:6443", identity.Spec.AuthParams.APIServer)
}

// Two lists of certificate authorities are equal when they differ only in layout and order. They are not equal when an
// authority is different or missing.
func TestAuthoritiesCompareWithoutOrder(t *testing.T) {
	a, b := testkit.NewAuthority(t), testkit.NewAuthority(t)
	of := func(data string) string {
		return authoritiesOf(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte(data)}})
	}
	both := of(string(a.PEM()) + string(b.PEM()))
	require.Equal(t, both, of("\n"+string(b.PEM())+"\n# more\n"+string(a.PEM())))
	require.NotEqual(t, both, of(string(a.PEM())))
	require.Equal(t, noAuthorities, of(""))
}
