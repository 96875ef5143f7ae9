package grpcserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/protobytes"
)

// rawCodec sends and receives bytes without a change.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (rawCodec) Name() string { return "proto" }

// replay plays the calls of a CA release from a file, byte by byte, on one server.
type replay struct {
	t      *testing.T
	groups *fakeGroups
	conn   *grpc.ClientConn
	named  map[string][]byte // the bytes by their name in a file
}

// Each file contains the calls of one release of CA, in the order and the encoding of this release. See
// testdata/releases/README.md.
func TestCallsOfEachCARelease(t *testing.T) {
	files, err := filepath.Glob("testdata/releases/*.txt")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			f := newFake()
			server := loaded(t, f, spec("cpu", 0, 9), spec("gpu", 0, 9))
			r := replay{t: t, groups: f, conn: dial(t, server, ServeOptions{}), named: namedBytes(t)}
			story, calls := "", 0
			for n, line := range strings.Split(string(text), "\n") {
				where := fmt.Sprintf("%s:%d: %s: %s", file, n+1, story, line)
				switch line = strings.TrimSpace(line); {
				case line == "", strings.HasPrefix(line, "#"):
				case strings.HasPrefix(line, "=="):
					story = strings.Trim(line, "= ")
				case strings.HasPrefix(line, "!"):
					r.happens(strings.Fields(line)[1:], where)
				default:
					calls++
					require.NoError(t, r.call(line), where)
				}
			}
			require.Greater(t, calls, 40)
			require.Equal(t, 15*time.Minute, time.Duration(server.roster.Load().byID["cpu"].caWaits.Load()),
				"max-node-provision-time, as the options tell it")
		})
	}
}

func namedBytes(t *testing.T) map[string][]byte {
	t.Helper()
	node, err := template.Of(spec("cpu", 0, 9).InstanceSpec).Marshal()
	require.NoError(t, err)
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: spec("cpu", 0, 1).Shape}}}}}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	return map[string][]byte{"template": node, "pod": raw}
}

// happens changes an instance between two calls: `ready cpu-t0-1`, `failed cpu-t0-2 NoCapacity`, or `gone cpu-t0-1`
// after its deletion.
func (r replay) happens(what []string, where string) {
	r.t.Helper()
	require.GreaterOrEqual(r.t, len(what), 2, where)
	group, _, _ := strings.Cut(what[1], "-")
	found := false
	r.groups.change(group, func(l *fleet.Ledger) {
		for _, e := range l.Entries {
			if e.Name != what[1] {
				continue
			}
			found = true
			switch what[0] {
			case "ready":
				e.Phase, e.Registered = fleet.Ready, true
			case "failed":
				e.Phase, e.Failure = fleet.Failed, fleet.NewFailure(fleet.Code(what[2]), "", "", "no provider has room")
			case "gone":
				e.Phase = fleet.Released
			default:
				found = false
			}
		}
	})
	require.True(r.t, found, where)
}

// call makes one call: METHOD request -> CODE response.
func (r replay) call(line string) error {
	asked, answered, ok := strings.Cut(line, "->")
	method, request, _ := strings.Cut(asked, " ")
	code, response, _ := strings.Cut(strings.TrimSpace(answered), " ")
	if !ok {
		return fmt.Errorf("no answer is given")
	}
	fields, err := protobytes.Parse(request, r.named)
	if err != nil {
		return err
	}
	want, err := protobytes.Parse(response, r.named)
	if err != nil {
		return err
	}
	raw, got := protobytes.Append(nil, fields), []byte(nil)
	err = r.conn.Invoke(client{t: r.t}.ctx(), "/"+protos.CloudProvider_ServiceDesc.ServiceName+"/"+method, &raw, &got,
		grpc.ForceCodec(rawCodec{}))
	if status.Code(err).String() != code {
		return fmt.Errorf("the answer is %s: %w", status.Code(err), err)
	}
	return protobytes.Match(want, got)
}
