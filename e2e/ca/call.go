package ca

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// These constants are the RPCs of externalgrpc that suites evaluate. Call.Method contains these names.
const (
	Refresh            = "Refresh"
	TargetSize         = "NodeGroupTargetSize"
	IncreaseSize       = "NodeGroupIncreaseSize"
	DeleteNodes        = "NodeGroupDeleteNodes"
	DecreaseTargetSize = "NodeGroupDecreaseTargetSize"
	Nodes              = "NodeGroupNodes"
	TemplateNodeInfo   = "NodeGroupTemplateNodeInfo"
)

// Call is one finished RPC.
type Call struct {
	Seq      int           `json:"seq"` // calls are numbered from 1, in the order in which they end
	At       time.Time     `json:"at"`  // time at which the call arrived
	Method   string        `json:"method"`
	Duration time.Duration `json:"ns"`
	Code     string        `json:"code"` // gRPC status code, "OK"
	Error    string        `json:"error,omitempty"`
	Request  any           `json:"request,omitempty"`  // a *protos.…Request
	Response any           `json:"response,omitempty"` // a *protos.…Response, nil unless Code is OK
}

func (c Call) String() string {
	b, _ := json.Marshal(c.Request)
	return fmt.Sprintf("#%d %s %s %.1f ms %s %s", c.Seq, c.Method, b, float64(c.Duration.Microseconds())/1000, c.Code,
		c.Error)
}

// OK reports whether the call succeeded.
func (c Call) OK() bool { return c.Code == "OK" }

// Failed reports whether the call failed unexpectedly. The error Unimplemented does not count as a failure, because
// CA works without the RPCs that a provider may leave out.
func (c Call) Failed() bool { return !c.OK() && c.Code != "Unimplemented" }

// decode decodes the request and the response of a call into the types of the call's method. The result for an
// unreadable message is nil.
func decode(fullMethod string, request, response []byte) (method string, req, res any) {
	method = fullMethod[strings.LastIndex(fullMethod, "/")+1:]
	service := protos.File_cloudprovider_externalgrpc_protos_externalgrpc_proto.Services().ByName("CloudProvider")
	m := service.Methods().ByName(protoreflect.Name(method))
	if m == nil {
		return method, nil, nil
	}
	return method, read(m.Input(), request), read(m.Output(), response)
}

// read decodes a message into its Go struct. It returns nil when b is nil or the struct does not exist. The caller
// can marshal the structs of externalgrpc to JSON directly. protojson does not know the Kubernetes types in these
// structs.
func read(d protoreflect.MessageDescriptor, b []byte) any {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if b == nil || err != nil {
		return nil
	}
	m := t.New().Interface()
	if proto.Unmarshal(b, m) != nil {
		return nil
	}
	return m
}
