package grpcserver

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// fieldNodeBytes is NodeGroupTemplateNodeInfoResponse.nodeBytes, from CA 1.34.2 on: the node as bytes. CA up to 1.34.1
// reads nodeInfo = 1 alone, CA from 1.35 on nodeBytes alone, and either panics when its field is missing.
const fieldNodeBytes protowire.Number = 2

// templateResponse carries the template in both wire generations. The upstream message knows the first only, so the
// second is written as an unknown field. The response is shared by all calls and must not be changed.
func templateResponse(spec fleet.GroupSpec) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	node := Template(spec)
	raw, err := node.Marshal()
	if err != nil {
		return nil, fmt.Errorf("marshal template: %w", err)
	}
	second := protowire.AppendTag(nil, fieldNodeBytes, protowire.BytesType)
	second = protowire.AppendBytes(second, raw)
	response := &protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: node}
	response.ProtoReflect().SetUnknown(second)
	return response, nil
}

// unknownField is a field of the second wire generation that holds bytes or a message, which the upstream message does
// not know; nil when it is not there.
func unknownField(m proto.Message, field protowire.Number) []byte {
	if values := unknownFields(m, field); len(values) > 0 {
		return values[0]
	}
	return nil
}

// unknownFields are all values of a repeated one. What cannot be read ends them.
func unknownFields(m proto.Message, field protowire.Number) (values [][]byte) {
	for raw := []byte(m.ProtoReflect().GetUnknown()); len(raw) > 0; {
		number, kind, tag := protowire.ConsumeTag(raw)
		n := protowire.ConsumeFieldValue(number, kind, raw[max(tag, 0):])
		if tag < 0 || n < 0 {
			break
		}
		if number == field && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(raw[tag:])
			values = append(values, value)
		}
		raw = raw[tag+n:]
	}
	return values
}
