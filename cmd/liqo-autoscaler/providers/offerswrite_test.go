package providers

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// addOffer first checks the contents. It then creates the Secret of the offer, or updates the Secret that it has
// created earlier. Its errors quote no part of the kubeconfig.
func TestOffersAddWritesTheSecret(t *testing.T) {
	kube := fake.NewClientset()
	access := []byte("clusters: [{name: c, cluster: {server: 'https://s3cret'}}]")
	data := map[string][]byte{"kubeconfig": access, "info": []byte("resources: {cpu: 1, memory: 1Gi, pods: 10}")}
	for range 2 {
		require.NoError(t, addOffer(t.Context(), kube, "lend", "milan", data))
	}
	secret, err := kube.CoreV1().Secrets("lend").Get(t.Context(), "milan", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, data, secret.Data)
	require.Equal(t, map[string]string{"autoscaling": "true"}, secret.Labels)

	require.NoError(t, addOffer(t.Context(), kube, "lend", "turin", map[string][]byte{"kubeconfig": access}))
	secret, err = kube.CoreV1().Secrets("lend").Get(t.Context(), "turin", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, secret.Labels, "credentials alone are no offer")

	for says, wrong := range map[string]map[string][]byte{
		"kubeconfig: is missing": {},
		"names no cluster":       {"kubeconfig": []byte("apiVersion: v1")},
		"info.resources":         {"kubeconfig": access, "info": []byte("resources: {cpu: -1, memory: 1Gi, pods: 10}")},
	} {
		err := addOffer(t.Context(), kube, "lend", "rome", wrong)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
