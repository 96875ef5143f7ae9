package agent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

func TestOffersInTenantNamespaces(t *testing.T) {
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-munich"}})
	config := Config{Offers: []OfferConfig{
		{Consumer: "munich", Hub: "default", Spec: discovery.Spec{Name: "a"}},
		{Consumer: "munich", Hub: "edge", Spec: discovery.Spec{Name: "b"}},
		{Consumer: "munich", Hub: "edge", Spec: discovery.Spec{Name: "twice"}},
	}}
	sink := &Tenants{Kube: kube, Config: func() Config { return config }}
	offer := func(name string) api.Posted {
		return api.Posted{Spec: discovery.Spec{Name: name, Provider: "milan", Price: 0.5,
			Credentials: discovery.CredentialsSpec{SecretRef: &discovery.SecretRefSpec{Namespace: "n", Name: "key"}},
			Lendable:    corev1.ResourceList{"cpu": resource.MustParse("4")}}}
	}
	there := func() map[string]string {
		t.Helper()
		found, err := kube.CoreV1().ConfigMaps("liqo-tenant-munich").Get(t.Context(), discovery.PublishedName,
			metav1.GetOptions{})
		require.NoError(t, err)
		return found.Data
	}
	sink.Restart()
	require.NoError(t, sink.Withdraw(t.Context(), "a"), "not there is no error")
	require.NoError(t, sink.Put(t.Context(), offer("a"), time.Minute))
	require.NoError(t, sink.Put(t.Context(), offer("b"), time.Minute))
	require.ErrorContains(t, sink.Put(t.Context(), offer("twice"), time.Minute),
		"offers b and twice are both for hub edge")
	require.ErrorContains(t, sink.Put(t.Context(), offer("gone"), time.Minute), "no longer in the config")

	first := there()
	require.Len(t, first, 2)
	var published discovery.Published
	require.NoError(t, json.Unmarshal([]byte(first["default"]), &published))
	require.Equal(t, int64(60), published.TTLSeconds)
	require.Equal(t, "4", published.Lendable.Cpu().String())
	require.Equal(t, 0.5, published.Price)
	require.NotContains(t, first["default"], "secretRef", "the consumer knows its credentials")

	require.NoError(t, sink.Put(t.Context(), offer("a"), time.Minute))
	require.NotEqual(t, first["default"], there()["default"], "a renewal differs from the previous document")
	require.NoError(t, sink.Withdraw(t.Context(), "b"))
	require.Contains(t, there(), "default")
	require.NotContains(t, there(), "edge")
	require.NoError(t, sink.Put(t.Context(), offer("twice"), time.Minute), "its place is free")

	config.Offers[0].Hub = "lab"
	require.NoError(t, sink.Put(t.Context(), offer("a"), time.Minute))
	require.Contains(t, there(), "lab")
	require.NotContains(t, there(), "default", "it is for another hub now")

	// The next agent does not know which keys the first agent has written. Its first write removes the keys of offers
	// that it does not publish.
	next := &Tenants{Kube: kube, Config: sink.Config}
	next.Restart()
	require.NoError(t, next.Put(t.Context(), offer("a"), time.Minute))
	require.NotContains(t, there(), "edge")
}
