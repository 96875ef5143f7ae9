package grpcserver

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// These constants are field numbers. CA's messages have two generations of fields. CA up to 1.34.1 uses only the
// first generation, CA from 1.35 on uses only the second, and versions in between use both. Our compiled messages do
// not have these fields of the second generation.
const (
	// fieldNodeBytes is NodeGroupTemplateNodeInfoResponse.nodeBytes; the first generation has nodeInfo = 1. CA panics
	// when the field that it reads is missing.
	fieldNodeBytes protowire.Number = 2
	// fieldProvisionTime is NodeGroupAutoscalingOptions.MaxNodeProvisionTime, a protobuf Duration (options.go).
	fieldProvisionTime protowire.Number = 10
	// These fields contain the times of PricingNodePriceRequest and PricingPodPriceRequest as protobuf Timestamps,
	// and the pod of PricingPodPriceRequest as bytes (price.go).
	fieldNodeStart, fieldNodeEnd              protowire.Number = 4, 5
	fieldPodStart, fieldPodEnd, fieldPodBytes protowire.Number = 5, 6, 4
	// fieldOptionPod is Option.podBytes of CA's expander; the first generation has pod = 4 (expander.go).
	fieldOptionPod protowire.Number = 5
)

// templateResponse returns the template in the fields of both generations. The compiled message has only the field of
// the first generation. Therefore templateResponse writes the field of the second generation as an unknown field. All
// calls share the response, so a caller must not change it.
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

// These constants are CA's error classes (CA cloudprovider/cloud_provider.go, InstanceErrorClass). CA uses the class
// only in its messages.
const (
	classOutOfResources = 1
	classOther          = 99
)

// toInstance converts an instance for CA. The state in the result is never "unspecified", because CA would drop the
// error info of such an instance.
func toInstance(group string, v fleet.InstanceView) *protos.Instance {
	status := &protos.InstanceStatus{InstanceState: protos.InstanceStatus_instanceCreating}
	switch v.State {
	case fleet.StateRunning:
		status.InstanceState = protos.InstanceStatus_instanceRunning
	case fleet.StateDeleting:
		status.InstanceState = protos.InstanceStatus_instanceDeleting
	case fleet.StateCreating:
		if v.Phase == fleet.Failed { // CA sees no error of an attempt that another attempt follows
			status.ErrorInfo = toErrorInfo(v.Failure)
		}
	}
	return &protos.Instance{Id: v.ID(group), Status: status}
}

// toErrorInfo converts a failure for CA. The code in the result is never empty, because CA treats an empty code as
// "no error".
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
