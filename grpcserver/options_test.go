package grpcserver

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// secondGeneration returns the options in the encoding of CA 1.35 and later.
func secondGeneration(t *testing.T, d time.Duration) *protos.NodeGroupAutoscalingOptions {
	t.Helper()
	return optionsOf(t, durationpb.New(d))
}

func optionsOf(t *testing.T, d *durationpb.Duration) *protos.NodeGroupAutoscalingOptions {
	t.Helper()
	value, err := proto.Marshal(d)
	require.NoError(t, err)
	raw := protowire.AppendVarint(protowire.AppendTag(nil, 6, protowire.VarintType), 1)
	raw = protowire.AppendBytes(protowire.AppendTag(raw, 10, protowire.BytesType), value)
	o := &protos.NodeGroupAutoscalingOptions{}
	require.NoError(t, proto.Unmarshal(raw, o))
	return o
}

// CA's request contains the time for which CA waits for a node. The server always answers Unimplemented, so that CA's
// own flags apply.
func TestOptionsOfCAsFlagsApply(t *testing.T) {
	f, logs := newFake(), &testkit.Buffer{}
	short := spec("cpu", 0, 5)
	short.Budgets.Total = metav1.Duration{Duration: 12 * time.Minute}
	s, err := New(Options{Groups: f, Specs: specs("gpu"), Logger: slog.New(slog.NewTextHandler(logs, nil))})
	require.NoError(t, err)
	require.NoError(t, s.apply(Settings{Specs: append(specs("gpu"), short)}))
	c := newClient(t, s)
	tell := func(o *protos.NodeGroupAutoscalingOptions) bool {
		t.Helper()
		_, err := c.NodeGroupGetOptions(c.ctx(), &protos.NodeGroupAutoscalingOptionsRequest{Id: "cpu", Defaults: o})
		requireCode(t, codes.Unimplemented, err)
		return s.roster.Load().byID["cpu"].isGivenUpEarly()
	}
	first := func(d time.Duration) *protos.NodeGroupAutoscalingOptions {
		return &protos.NodeGroupAutoscalingOptions{MaxNodeProvisionTime: &metav1.Duration{Duration: d}}
	}
	require.False(t, tell(nil), "not sent")
	require.False(t, tell(secondGeneration(t, 15*time.Minute)))
	require.NotContains(t, logs.String(), "gives up")
	require.True(t, tell(secondGeneration(t, 12*time.Minute)))
	require.Equal(t, 1, strings.Count(logs.String(), "gives up"))
	require.True(t, tell(secondGeneration(t, 12*time.Minute)))
	require.Equal(t, 1, strings.Count(logs.String(), "gives up"), "once, not with each request")
	require.False(t, tell(first(13*time.Minute)))
	require.Equal(t, 1, strings.Count(logs.String(), "gives up"), "it waits long enough")
	require.True(t, tell(first(time.Minute)))
	require.Equal(t, 2, strings.Count(logs.String(), "gives up"))
	require.True(t, tell(nil), "the last word holds")

	_, err = c.NodeGroupGetOptions(c.ctx(), &protos.NodeGroupAutoscalingOptionsRequest{Id: "unknown", Defaults: first(1)})
	requireCode(t, codes.Unimplemented, err)
	require.Zero(t, provisionTime(broken(t)))
	require.Zero(t, provisionTime(optionsOf(t, &durationpb.Duration{Seconds: math.MaxInt64})), "no duration is so long")
}

// broken returns options in which the encoding of the duration is invalid.
func broken(t *testing.T) *protos.NodeGroupAutoscalingOptions {
	t.Helper()
	o := &protos.NodeGroupAutoscalingOptions{}
	o.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 10, protowire.BytesType), []byte{0xff}))
	return o
}
