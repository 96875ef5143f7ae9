//go:build externalgrpc

package inprocess

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider"
	testprovider "k8s.io/autoscaler/cluster-autoscaler/cloudprovider/test"
	"k8s.io/autoscaler/cluster-autoscaler/clusterstate"
	"k8s.io/autoscaler/cluster-autoscaler/clusterstate/utils"
	"k8s.io/autoscaler/cluster-autoscaler/config"
	"k8s.io/autoscaler/cluster-autoscaler/processors/nodegroupconfig"
	"k8s.io/autoscaler/cluster-autoscaler/processors/nodegroups/asyncnodegroups"
	"k8s.io/autoscaler/cluster-autoscaler/utils/backoff"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/doctor"
)

// nodeThatIs returns a Node that is two hours old and has had this condition for one hour.
func nodeThatIs(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-2 * time.Hour))},
		Spec:       corev1.NodeSpec{ProviderID: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready,
			LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}},
	}
}

// notImplemented behaves like the method HasInstance of CA's provider gce. The providers aws and azure return a
// different error for a Node that is not theirs. After any of these errors CA does not treat the Node as deleted, and
// counts it as not Ready (CA clusterstate/clusterstate.go, hasCloudProviderInstance).
func notImplemented(string) (bool, error) { return true, cloudprovider.ErrNotImplemented }

// Another Cluster Autoscaler runs in the cluster, next to virtual nodes whose providers have died. The doctor command
// predicts whether this Cluster Autoscaler stops scaling. The test compares the prediction with Cluster Autoscaler's
// own registry.
func TestDoctorKnowsWhenAnotherAutoscalerStops(t *testing.T) {
	stops := 0
	for _, c := range []struct {
		real, virtual int
		most          int
		percent       float64
	}{
		{10, 3, 3, 45}, {10, 8, 3, 45}, {10, 9, 3, 45}, {4, 4, 3, 45}, {4, 10, 3, 45}, {11, 9, 3, 45},
		{4, 10, 10, 45}, {4, 10, 3, 80}, {0, 4, 3, 100},
	} {
		provider := testprovider.NewTestCloudProviderBuilder().WithHasInstance(notImplemented).Build()
		provider.AddNodeGroup("cloud", 0, 100, c.real)
		var nodes []*corev1.Node
		for i := range c.real {
			node := nodeThatIs(fmt.Sprintf("real-%d", i), corev1.ConditionTrue)
			provider.AddNode("cloud", node)
			nodes = append(nodes, node)
		}
		for i := range c.virtual {
			nodes = append(nodes, nodeThatIs(fmt.Sprintf("liqo://standard/standard-a-%d", i), corev1.ConditionUnknown))
		}
		events, err := utils.NewStatusMapRecorder(&fake.Clientset{}, "kube-system", record.NewFakeRecorder(5), false, "x")
		require.NoError(t, err)
		registry := clusterstate.NewClusterStateRegistry(provider, clusterstate.ClusterStateRegistryConfig{
			MaxTotalUnreadyPercentage: c.percent, OkTotalUnreadyCount: c.most}, events,
			backoff.NewIdBasedExponentialBackoff(time.Minute, time.Hour, 3*time.Hour),
			nodegroupconfig.NewDefaultNodeGroupConfigProcessor(config.NodeGroupAutoscalingOptions{
				MaxNodeProvisionTime: time.Minute}), asyncnodegroups.NewDefaultAsyncNodeGroupStateChecker())
		require.NoError(t, registry.UpdateNodes(nodes, nil, time.Now()))
		computed := doctor.StopsScaling(c.virtual, c.real+c.virtual, float64(c.most), c.percent)
		require.Equal(t, !registry.IsClusterHealthy(), computed, "%+v", c)
		if computed {
			stops++
		}
	}
	require.Equal(t, 3, stops)
}
