package grpcserver

import (
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

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
