package grpcserver

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// Fields of the second wire generation, which the messages we compile do not have: CA up to 1.34.1 knows the first
// generation alone, CA from 1.35 on the second alone, those between know both.
const (
	// NodeGroupTemplateNodeInfoResponse.nodeBytes, beside nodeInfo = 1: CA panics when its own one is missing.
	fieldNodeBytes protowire.Number = 2
	// NodeGroupAutoscalingOptions.MaxNodeProvisionTime, a protobuf Duration (options.go).
	fieldProvisionTime protowire.Number = 10
	// PricingNodePriceRequest's times and those of PricingPodPriceRequest, protobuf Timestamps, and the pod of the latter
	// as bytes (price.go).
	fieldNodeStart, fieldNodeEnd              protowire.Number = 4, 5
	fieldPodStart, fieldPodEnd, fieldPodBytes protowire.Number = 5, 6, 4
	// Option.podBytes of CA's expander, beside pod = 4 (expander.go).
	fieldOptionPod protowire.Number = 5
)

// templateResponse carries the template in both wire generations. The upstream message knows the first only, so the
// second is written as an unknown field. The response is shared by all calls and must not be changed.
func templateResponse(spec fleet.GroupSpec) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	node := template.Of(spec.InstanceSpec)
	raw, err := node.Marshal()
	if err != nil {
		return nil, fmt.Errorf("marshal template: %w", err)
	}
	response := &protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: node}
	wire.Append(response, fieldNodeBytes, raw)
	return response, nil
}

// CA's error classes (CA cloudprovider/cloud_provider.go, InstanceErrorClass); they only change texts.
const (
	classOutOfResources = 1
	classOther          = 99
)

// toInstance is an instance as CA sees it. The state is never "unspecified", with which CA would drop the error info.
func toInstance(group string, v fleet.InstanceView) *protos.Instance {
	status := &protos.InstanceStatus{InstanceState: protos.InstanceStatus_instanceCreating}
	switch v.State {
	case fleet.StateRunning:
		status.InstanceState = protos.InstanceStatus_instanceRunning
	case fleet.StateDeleting:
		status.InstanceState = protos.InstanceStatus_instanceDeleting
	case fleet.StateCreating:
		if v.Phase == fleet.Failed { // an attempt that failed while others follow is no error to CA
			status.ErrorInfo = toErrorInfo(v.Failure)
		}
	}
	return &protos.Instance{Id: v.ID(group), Status: status}
}

// toErrorInfo never has an empty code, which CA takes for "no error".
func toErrorInfo(f *fleet.Failure) *protos.InstanceErrorInfo {
	if f == nil || f.Code == "" {
		f = fleet.NewFailure(fleet.CodeInternal, "", "", "failed without a recorded reason")
	}
	info := &protos.InstanceErrorInfo{ErrorCode: string(f.Code), ErrorMessage: f.Message, InstanceErrorClass: classOther}
	if f.Code.Row().Class == fleet.OutOfResources {
		info.InstanceErrorClass = classOutOfResources
	}
	return info
}
