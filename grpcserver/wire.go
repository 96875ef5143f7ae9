package grpcserver

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/template"
)

// fieldNodeBytes is NodeGroupTemplateNodeInfoResponse.nodeBytes, from CA 1.34.2 on: the node as bytes. CA up to 1.34.1
// reads nodeInfo = 1 alone, CA from 1.35 on nodeBytes alone, and either panics when its field is missing.
const fieldNodeBytes protowire.Number = 2

// templateResponse carries the template in both wire generations. The upstream message knows the first only, so the
// second is written as an unknown field. The response is shared by all calls and must not be changed.
func templateResponse(spec fleet.GroupSpec) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	node := template.Of(spec)
	raw, err := node.Marshal()
	if err != nil {
		return nil, fmt.Errorf("marshal template: %w", err)
	}
	response := &protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: node}
	wire.Append(response, fieldNodeBytes, raw)
	return response, nil
}
