package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
	expander "k8s.io/autoscaler/cluster-autoscaler/expander/grpcplugin/protos"
)

// TestServer attacks the gRPC server, while CA calls it and sends large bursts of pods to the expander.
func TestServer(t *testing.T) {
	h := newHub(newStack(t))
	clients := append(append(h.calls(), h.burst(t)), h.server.observed()...)
	emptyPods := emptyPods()
	anonymous := h.kept("127.0.0.9", false)
	under(t, h.server, []*member{h.server, h.worker}, clients,
		attack{name: "empty-pods", hands: 4, once: func(ctx context.Context, requests *atomic.Int64) {
			_, _ = raw(ctx, anonymous, bestOptions, emptyPods)
			requests.Add(1)
		}},
		attack{name: "far-exponents", hands: 4, once: func(ctx context.Context, requests *atomic.Int64) {
			_, _ = raw(ctx, anonymous, bestOptions, farExponents())
			requests.Add(1)
		}},
		attack{name: "no-certificate", hands: 8, once: func(ctx context.Context, requests *atomic.Int64) {
			_, _ = protos.NewCloudProviderClient(anonymous).NodeGroups(ctx, &protos.NodeGroupsRequest{})
			requests.Add(1)
		}},
		attack{name: "large-heads", hands: 2, once: h.largeHeads},
		attack{name: "long-chain", hands: 8, once: h.handshakes(longChain(t))},
		attack{name: "handshakes", hands: 8, once: h.handshakes(nil)},
		halfHandshakes(h.address, 5000),
		pipelined(h.server.metrics))
}

const bestOptions = "/grpcplugin.Expander/BestOptions"

// rawCodec sends encoded messages, and returns answers undecoded.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = rawCodec{}

func raw(ctx context.Context, conn *grpc.ClientConn, method string, message []byte) (answer []byte, err error) {
	err = conn.Invoke(ctx, method, message, &answer, grpc.ForceCodecV2(rawCodec{}),
		grpc.MaxCallSendMsgSize(32<<20), grpc.MaxCallRecvMsgSize(32<<20))
	return answer, err
}

// emptyPods returns a request for the expander. The request has just under 16 MiB, and contains as many pods as fit,
// because each pod has only two bytes.
func emptyPods() []byte { return optionWith(bytes.Repeat([]byte{0x22, 0x00}, 8<<20-64)) }

// farExponents returns a request for the expander. Kubernetes' parser needs minutes for the amounts in its pods.
func farExponents() []byte {
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	var pods []byte
	for n := range 1000 {
		amount := fmt.Sprintf("1%de%d", n, 2147483000+n)
		entry := append(field(1, []byte("cpu")), field(2, field(1, []byte(amount)))...) // a request of a container
		pods = append(pods, field(4, field(2, field(2, field(8, field(2, entry)))))...)
	}
	return optionWith(pods)
}

// optionWith returns a request with one option that has these pods.
func optionWith(pods []byte) []byte {
	option, err := proto.Marshal(&expander.Option{NodeGroupId: "std", NodeCount: 1})
	if err != nil {
		panic(err)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), append(option, pods...))
}

// burst sends the request that CA sends to the expander for a large burst: sixty options with five hundred full-sized
// pods each.
func (h *hub) burst(t *testing.T) honest {
	pods := make([]*corev1.Pod, 500)
	for i := range pods {
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("work-%d", i), Namespace: "apps",
			Labels: map[string]string{"app": "work", "pod-template-hash": "5d4f8c7b9"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "work", Image: "example.com/work:1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"),
					"memory": resource.MustParse("1Gi")}}}}}}
	}
	request := &expander.BestOptionsRequest{NodeMap: map[string]*corev1.Node{}}
	for i := range 60 {
		group := "std"
		if i > 0 {
			group = fmt.Sprintf("foreign-%d", i)
		}
		request.Options = append(request.Options, &expander.Option{NodeGroupId: group, NodeCount: 10, Pod: pods})
		request.NodeMap[group] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: group}}
	}
	message, err := proto.Marshal(request)
	require.NoError(t, err)
	require.Less(t, len(message), 16<<20)
	conn := h.kept("127.0.0.2", false)
	answer, err := raw(t.Context(), conn, bestOptions, message)
	require.NoError(t, err)
	require.NotEmpty(t, answer)
	return honest{"expander", func(ctx context.Context) error {
		_, err := raw(ctx, conn, bestOptions, message)
		return err
	}, patience}
}

// handshakes makes one TLS handshake after another, with a chain of client certificates unless it is nil. It sends
// nothing else.
func (h *hub) handshakes(chain *tls.Certificate) func(context.Context, *atomic.Int64) {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // an attacker
	if chain != nil {
		config.Certificates = []tls.Certificate{*chain}
	}
	return func(ctx context.Context, requests *atomic.Int64) {
		conn, err := from("127.0.0.9").DialContext(ctx, "tcp", h.address)
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		over := tls.Client(conn, config)
		if over.HandshakeContext(ctx) == nil {
			_, _ = over.Read(make([]byte, 1))
		}
		requests.Add(1)
	}
}

// largeHeads opens forty streams on a connection, with a head of eight megabytes each, and sends no message.
func (h *hub) largeHeads(ctx context.Context, requests *atomic.Int64) {
	conn, err := from("127.0.0.9").DialContext(ctx, "tcp", h.address)
	if err != nil {
		return
	}
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // an attacker
	over := tls.Client(conn, config)
	defer over.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = over.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := over.Write([]byte(http2.ClientPreface)); err != nil {
		return
	}
	frames := http2.NewFramer(over, over)
	if frames.WriteSettings() != nil {
		return
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"},
		{Name: ":path", Value: bestOptions}, {Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"}} {
		_ = encoder.WriteField(f)
	}
	begin := slices.Clone(block.Bytes())
	block.Reset()
	for i := range 1000 {
		_ = encoder.WriteField(hpack.HeaderField{Name: fmt.Sprintf("a%d", i), Value: strings.Repeat("~", 4096),
			Sensitive: true})
	}
	large := block.Bytes() // Huffman codes do not shorten it
	for stream := range uint32(40) {
		id := 2*stream + 1
		if frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: begin}) != nil {
			return
		}
		requests.Add(1)
		for part := range slices.Chunk(large, 16<<10) {
			if frames.WriteContinuation(id, false, part) != nil {
				return
			}
		}
		if frames.WriteContinuation(id, true, nil) != nil {
			return
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
}
