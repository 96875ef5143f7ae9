package e2e_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// strictCloud is a cloud whose Cluster Autoscaler returns an error for a Node with the providerID of another cloud,
// like the clouds in the last row of the table in docs/other-autoscalers.md. Its nodes never appear.
type strictCloud struct {
	protos.UnimplementedCloudProviderServer
	mu      sync.Mutex
	target  int32
	refused int // number of calls for Nodes of other clouds
}

// strictGroup is the cloud's only node group, and the name of the label by which pods select its nodes.
const strictGroup = "cloud"

func (c *strictCloud) state() (target int32, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.target, c.refused
}

// NodeGroups implements protos.CloudProviderServer.
func (c *strictCloud) NodeGroups(context.Context, *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	return &protos.NodeGroupsResponse{NodeGroups: []*protos.NodeGroup{{Id: strictGroup, MaxSize: 9}}}, nil
}

// NodeGroupForNode implements protos.CloudProviderServer.
func (c *strictCloud) NodeGroupForNode(_ context.Context, r *protos.NodeGroupForNodeRequest) (
	*protos.NodeGroupForNodeResponse, error) {
	switch id := r.GetNode().GetProviderID(); {
	case id == "":
		return &protos.NodeGroupForNodeResponse{NodeGroup: &protos.NodeGroup{}}, nil
	case strings.HasPrefix(id, strictGroup+"://"):
		return &protos.NodeGroupForNodeResponse{NodeGroup: &protos.NodeGroup{Id: strictGroup, MaxSize: 9}}, nil
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refused++
		return nil, status.Errorf(codes.Internal, "the providerID %s is not of this cloud", id)
	}
}

// GPULabel implements protos.CloudProviderServer.
func (c *strictCloud) GPULabel(context.Context, *protos.GPULabelRequest) (*protos.GPULabelResponse, error) {
	return &protos.GPULabelResponse{}, nil
}

// GetAvailableGPUTypes implements protos.CloudProviderServer.
func (c *strictCloud) GetAvailableGPUTypes(context.Context, *protos.GetAvailableGPUTypesRequest) (
	*protos.GetAvailableGPUTypesResponse, error) {
	return &protos.GetAvailableGPUTypesResponse{}, nil
}

// Refresh implements protos.CloudProviderServer.
func (c *strictCloud) Refresh(context.Context, *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	return &protos.RefreshResponse{}, nil
}

// NodeGroupTargetSize implements protos.CloudProviderServer.
func (c *strictCloud) NodeGroupTargetSize(context.Context, *protos.NodeGroupTargetSizeRequest) (
	*protos.NodeGroupTargetSizeResponse, error) {
	target, _ := c.state()
	return &protos.NodeGroupTargetSizeResponse{TargetSize: target}, nil
}

// NodeGroupIncreaseSize implements protos.CloudProviderServer.
func (c *strictCloud) NodeGroupIncreaseSize(_ context.Context, r *protos.NodeGroupIncreaseSizeRequest) (
	*protos.NodeGroupIncreaseSizeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.target += r.GetDelta()
	return &protos.NodeGroupIncreaseSizeResponse{}, nil
}

// NodeGroupNodes implements protos.CloudProviderServer.
func (c *strictCloud) NodeGroupNodes(context.Context, *protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse,
	error) {
	target, _ := c.state()
	out := &protos.NodeGroupNodesResponse{}
	for n := range target {
		out.Instances = append(out.Instances, &protos.Instance{Id: fmt.Sprintf("%s://%d", strictGroup, n),
			Status: &protos.InstanceStatus{InstanceState: protos.InstanceStatus_instanceCreating}})
	}
	return out, nil
}

// NodeGroupTemplateNodeInfo implements protos.CloudProviderServer, for both generations of the wire.
func (c *strictCloud) NodeGroupTemplateNodeInfo(context.Context, *protos.NodeGroupTemplateNodeInfoRequest) (
	*protos.NodeGroupTemplateNodeInfoResponse, error) {
	size := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
		"pods": resource.MustParse("110")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "template", Labels: map[string]string{strictGroup: "yes"}},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	raw, err := node.Marshal()
	if err != nil {
		return nil, err
	}
	out := &protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: node}
	out.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), raw))
	return out, nil
}

// startStrictCloud starts the cloud, and the Cluster Autoscaler that scales it.
func (s *stack) startStrictCloud(ctx context.Context) *strictCloud {
	s.t.Helper()
	cloud := &strictCloud{}
	server := grpc.NewServer()
	protos.RegisterCloudProviderServer(server, cloud)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	go func() { _ = server.Serve(listener) }()
	s.t.Cleanup(server.Stop)
	dir := filepath.Join(s.dir, "other")
	require.NoError(s.t, os.MkdirAll(dir, 0o755))
	config := filepath.Join(dir, "cloud-config.yaml")
	require.NoError(s.t, os.WriteFile(config, []byte(fmt.Sprintf("address: %q\n", listener.Addr())), 0o600))
	p, err := ca.Start(ctx, ca.Options{Binary: s.loop, Kubeconfig: s.lab.Kubeconfig(lab.Consumer), Dir: dir,
		CloudConfig: config, Flags: []string{"--write-status-configmap=false"}})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	return cloud
}

// TestTwoAutoscalers is the suite "two-autoscalers". A second Cluster Autoscaler runs in the cluster. It belongs to a
// cloud that returns an error for the providerID of a virtual node. Our Cluster Autoscaler works. The second one
// scales nothing while a virtual node exists, as docs/other-autoscalers.md states, and continues when the node is
// gone.
func TestTwoAutoscalers(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "two-autoscalers", groups, offers)
	offload(ctx, newSteps(t), s.consumer)
	cloud := s.startStrictCloud(ctx)
	r := newRun(t, s)
	size := func(want int32) func(context.Context) error {
		return func(context.Context) error {
			if have, refused := cloud.state(); have != want {
				return fmt.Errorf("the other cloud has a target size of %d, and refused %d Nodes", have, refused)
			}
			return nil
		}
	}
	theirs := map[string]string{strictGroup: "yes"}
	require.NoError(t, deploy(ctx, s.consumer, "theirs", 1, "3", theirs))
	r.until(ctx, "the other cloud grows", time.Minute, size(1))

	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids := r.scaledOut(ctx, 1)
	require.NoError(t, deploy(ctx, s.consumer, "more", 1, "3", theirs))
	r.during(ctx, "the other cloud does not grow while a virtual node exists", 20*time.Second, size(1))
	_, refused := cloud.state()
	require.NotZero(t, refused, "it was not called for the virtual node, so this test proves nothing")

	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
	r.until(ctx, "the other cloud grows again", time.Minute, size(2))
}
