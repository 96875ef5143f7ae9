package deploy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// revokes checks that the provider's administrator can list a consumer's access and revoke it. The parameter file is
// the path of a kubeconfig with a token of the consumer's account. After the revocation, this kubeconfig is invalid.
func revokes(t *testing.T, c *cluster, file string) {
	access := func(args ...string) (string, error) {
		return c.run(t, tool(t, "LIQO_AUTOSCALER"), nil, append([]string{"provider-access"}, args...)...)
	}
	admin, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	stranger := liqoObject("Tenant", "liqo-tenant-turin", "turin", map[string]any{"clusterID": "turin"})
	c.kubectl(t, nil, "create", "namespace", "liqo-tenant-turin")
	_, err = admin.Resource(tenants).Namespace("liqo-tenant-turin").Create(t.Context(), stranger, metav1.CreateOptions{})
	require.NoError(t, err)
	// rome has no Tenant yet, but the policy for rome's certificates requires one. The binding of this policy does not
	// select this slice, because the slice has no label.
	held := liqoObject("ResourceSlice", consumerNamespace, "held", map[string]any{"consumerClusterID": "rome"})
	made, err := admin.Resource(sliceKind).Namespace(consumerNamespace).Create(t.Context(), held, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Object["status"] = map[string]any{"resources": map[string]any{"cpu": "1500m", "memory": "2Gi"}}
	_, err = admin.Resource(sliceKind).Namespace(consumerNamespace).UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.kubectl(t, nil, "delete", "validatingadmissionpolicybinding", "liqo-autoscaler-consumer-rome-pods")

	before := "Cordoned"
	own := liqoObject("Tenant", consumerNamespace, "rome", map[string]any{"clusterID": "rome", "tenantCondition": before})
	_, err = admin.Resource(tenants).Namespace(consumerNamespace).Create(t.Context(), own, metav1.CreateOptions{})
	require.NoError(t, err)
	out, err := access("list")
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?m)^CONSUMER +ACCOUNT +TENANT +SLICES +CPU +MEMORY +MISSING POLICIES$`, out)
	require.Regexp(t, `(?m)^rome +\d+[sm]\w* +`+before+` +1 +1500m +2Gi +pods$`, out)
	require.Regexp(t, `(?m)^turin +- +Active +0 +0 +0 +all$`, out)

	out, err = access("revoke", "--consumer-id", "nobody")
	require.Error(t, err)
	require.Contains(t, out, "consumer nobody has no access to this provider")
	whoami := func() (string, error) { return c.run(t, c.bin+"/kubectl", nil, "--kubeconfig", file, "auth", "whoami") }
	out, err = whoami()
	require.NoError(t, err, "%s", out)
	for range 2 {
		out, err = access("revoke", "--consumer-id", "rome")
		require.NoError(t, err, "%s", out)
		require.Contains(t, out, "Tenant "+consumerNamespace+"/rome is Drained: Liqo withdraws its 1 slices\n")
		require.Contains(t, out, "all tokens of ServiceAccount liqo-autoscaler/consumer-rome are invalid now\n")
	}
	testkit.Until(t, time.Minute, "the token is void", func() error {
		if out, err := whoami(); err == nil {
			return fmt.Errorf("it is good: %s", out)
		}
		return nil
	})
	list, err := admin.Resource(tenants).Namespace(consumerNamespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, tenant := range list.Items {
		condition, _, _ := unstructured.NestedString(tenant.Object, "spec", "tenantCondition")
		require.Equal(t, "Drained", condition, tenant.GetName())
	}
	out, err = access("list")
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?m)^turin +- +Active `, out)
}
