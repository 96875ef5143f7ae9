package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// memory is a correct provider with two node groups, whose Nodes never register. It is safe for concurrent use.
type memory struct {
	protos.UnimplementedCloudProviderServer

	mu   sync.Mutex
	list []*memoryInstance
	next int
}

type memoryInstance struct {
	group, id string
	state     protos.InstanceStatus_InstanceState
	code      string
}

const (
	memoryMax = 12
	// memoryMargin is the time that remains between an answer and the deadline of its caller.
	memoryMargin = 500 * time.Millisecond
)

var memoryGroups = []string{"cpu", "gpu"}

// newMemory returns a provider with one running instance in each group, and one failed instance in gpu.
func newMemory() *memory {
	m := &memory{}
	for _, group := range memoryGroups {
		m.add(group, 1, running, "")
	}
	m.add("gpu", 1, creating, "NoCapacity")
	return m
}

func (m *memory) add(group string, n int, state protos.InstanceStatus_InstanceState, code string) {
	for range n {
		m.next++
		m.list = append(m.list, &memoryInstance{group, fmt.Sprintf("memory://%s/%d", group, m.next), state, code})
	}
}

// counted returns the group's instances that are not being deleted, the oldest first.
func (m *memory) counted(group string) (out []*memoryInstance) {
	for _, i := range m.list {
		if i.group == group && i.state != deleting {
			out = append(out, i)
		}
	}
	return out
}

// The function `with` calls f under the lock.
func (m *memory) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func known(group string) error {
	if !slices.Contains(memoryGroups, group) {
		return status.Errorf(codes.NotFound, "no group %s", group)
	}
	return nil
}

func describe(group string) *protos.NodeGroup {
	return &protos.NodeGroup{Id: group, MinSize: 1, MaxSize: memoryMax}
}

func (m *memory) NodeGroups(context.Context, *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	resp := &protos.NodeGroupsResponse{}
	for _, group := range memoryGroups {
		resp.NodeGroups = append(resp.NodeGroups, describe(group))
	}
	return resp, nil
}

func (m *memory) NodeGroupForNode(_ context.Context,
	req *protos.NodeGroupForNodeRequest) (*protos.NodeGroupForNodeResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.list {
		if i.id == req.GetNode().GetProviderID() && i.state != deleting {
			return &protos.NodeGroupForNodeResponse{NodeGroup: describe(i.group)}, nil
		}
	}
	return &protos.NodeGroupForNodeResponse{NodeGroup: &protos.NodeGroup{}}, nil
}

func (m *memory) NodeGroupTargetSize(_ context.Context,
	req *protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &protos.NodeGroupTargetSizeResponse{TargetSize: int32(len(m.counted(req.GetId())))}, known(req.GetId())
}

func (m *memory) NodeGroupNodes(_ context.Context,
	req *protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	resp := &protos.NodeGroupNodesResponse{}
	for _, i := range m.list {
		if i.group != req.GetId() {
			continue
		}
		instance := &protos.Instance{Id: i.id, Status: &protos.InstanceStatus{InstanceState: i.state}}
		if i.code != "" {
			instance.Status.ErrorInfo = &protos.InstanceErrorInfo{ErrorCode: i.code, InstanceErrorClass: 1}
		}
		resp.Instances = append(resp.Instances, instance)
	}
	return resp, known(req.GetId())
}

func (m *memory) NodeGroupIncreaseSize(ctx context.Context,
	req *protos.NodeGroupIncreaseSizeRequest) (*protos.NodeGroupIncreaseSizeResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < memoryMargin {
		return nil, status.Error(codes.DeadlineExceeded, "no time for an answer")
	}
	n := int(req.GetDelta())
	switch err := known(req.GetId()); {
	case err != nil:
		return nil, err
	case n <= 0:
		return nil, status.Error(codes.InvalidArgument, "give more than 0")
	case len(m.counted(req.GetId()))+n > memoryMax:
		return nil, status.Error(codes.OutOfRange, "over max")
	}
	m.add(req.GetId(), n, creating, "")
	return &protos.NodeGroupIncreaseSizeResponse{}, nil
}

func (m *memory) NodeGroupDecreaseTargetSize(_ context.Context,
	req *protos.NodeGroupDecreaseTargetSizeRequest) (*protos.NodeGroupDecreaseTargetSizeResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := -int(req.GetDelta())
	if left <= 0 {
		return nil, status.Error(codes.InvalidArgument, "give less than 0")
	}
	cancelled := 0
	for _, i := range slices.Backward(m.counted(req.GetId())) {
		if i.state == creating && cancelled < left {
			i.state = deleting
			cancelled++
		}
	}
	if cancelled == 0 {
		return nil, status.Error(codes.FailedPrecondition, "nothing is on its way")
	}
	return &protos.NodeGroupDecreaseTargetSizeResponse{}, nil
}

func (m *memory) NodeGroupDeleteNodes(_ context.Context,
	req *protos.NodeGroupDeleteNodesRequest) (*protos.NodeGroupDeleteNodesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for commit := range 2 { // the first pass checks all names, and the second deletes
		for _, node := range req.GetNodes() {
			at := slices.IndexFunc(m.list, func(i *memoryInstance) bool { return i.id == node.GetProviderID() })
			if at < 0 || m.list[at].group != req.GetId() {
				return nil, status.Errorf(codes.InvalidArgument, "%s is not in %s", node.GetProviderID(), req.GetId())
			}
			if commit > 0 {
				m.list[at].state, m.list[at].code = deleting, ""
			}
		}
	}
	return &protos.NodeGroupDeleteNodesResponse{}, nil
}

func (m *memory) NodeGroupTemplateNodeInfo(_ context.Context,
	req *protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	node := memoryNode()
	return bothTemplates(node, node), known(req.GetId())
}

func memoryNode() *corev1.Node {
	node := &corev1.Node{}
	node.Labels = map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "empty": ""}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110")}
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	return node
}

func bothTemplates(first, second *corev1.Node) *protos.NodeGroupTemplateNodeInfoResponse {
	raw, err := second.Marshal()
	if err != nil {
		panic(err)
	}
	resp := &protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: first}
	wire.Append(resp, 2, raw)
	return resp
}

func (m *memory) PricingNodePrice(context.Context,
	*protos.PricingNodePriceRequest) (*protos.PricingNodePriceResponse, error) {
	return &protos.PricingNodePriceResponse{Price: 0.2}, nil
}

func (m *memory) PricingPodPrice(context.Context,
	*protos.PricingPodPriceRequest) (*protos.PricingPodPriceResponse, error) {
	return &protos.PricingPodPriceResponse{Price: 0.1}, nil
}

func (m *memory) GPULabel(context.Context, *protos.GPULabelRequest) (*protos.GPULabelResponse, error) {
	return &protos.GPULabelResponse{Label: "gpu"}, nil
}

func (m *memory) GetAvailableGPUTypes(context.Context,
	*protos.GetAvailableGPUTypesRequest) (*protos.GetAvailableGPUTypesResponse, error) {
	return &protos.GetAvailableGPUTypesResponse{}, nil
}

func (m *memory) Refresh(context.Context, *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	return &protos.RefreshResponse{}, nil
}

func (m *memory) Cleanup(context.Context, *protos.CleanupRequest) (*protos.CleanupResponse, error) {
	return &protos.CleanupResponse{}, nil
}
