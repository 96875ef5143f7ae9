package grpcserver

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cloudprotos "k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
	"k8s.io/autoscaler/cluster-autoscaler/expander/grpcplugin/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// optionOf returns an option of CA's expander: a node group that helps pods of this many CPUs each. If later is true,
// the option contains the pods in the field of CA 1.35 and later.
func optionOf(t testing.TB, group string, nodes int32, later bool, cpus ...string) *protos.Option {
	t.Helper()
	o := &protos.Option{NodeGroupId: group, NodeCount: nodes}
	for _, cpu := range cpus {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
		if !later {
			o.Pod = append(o.Pod, pod)
			continue
		}
		raw, err := pod.Marshal()
		require.NoError(t, err)
		o.ProtoReflect().SetUnknown(protowire.AppendBytes(
			protowire.AppendTag(o.ProtoReflect().GetUnknown(), fieldOptionPod, protowire.BytesType), raw))
	}
	return o
}

func pickOption(t testing.TB, conn *grpc.ClientConn, options ...*protos.Option) (groups []string, err error) {
	t.Helper()
	node := &corev1.Node{}
	resp, err := protos.NewExpanderClient(conn).BestOptions(t.Context(),
		&protos.BestOptionsRequest{Options: options, NodeMap: map[string]*corev1.Node{"cpu": node}})
	for _, o := range resp.GetOptions() {
		groups = append(groups, o.GetNodeGroupId())
	}
	return groups, err
}

// expanderSite serves groups "milan", "turin" and so on, one for each offer of the market, and the group "all".
func expanderSite(t *testing.T, m *fakeMarket, more ...fleet.GroupSpec) *grpc.ClientConn {
	t.Helper()
	groups := append([]fleet.GroupSpec{spec("all", 0, 10)}, more...)
	for _, o := range m.Offers {
		g := spec(o.Provider, 0, 10)
		g.Provider = o.Provider
		groups = append(groups, g)
	}
	s, err := New(Options{Groups: newFake(), Specs: groups, Logger: quiet, Market: m.current})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	return dial(t, s, ServeOptions{Expander: true})
}

func TestExpanderChoosesTheCheapestGroup(t *testing.T) {
	m := &fakeMarket{}
	m.nodes("milan", 2, 0.5)
	m.nodes("turin", 2, 0.2)
	m.nodes("rome", 2, 0.2)
	m.nodes("free", 1, 0)
	m.Offers[2].Peered = true
	small := spec("small", 0, 10)
	small.Provider, small.Shape = "free", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	conn := expanderSite(t, m, small)
	for name, tc := range map[string]struct {
		options map[string]int32 // node counts by group
		cpus    []string
		want    []string
	}{
		"price":                      {map[string]int32{"milan": 1, "turin": 1}, []string{"3"}, []string{"turin"}},
		"then a peering":             {map[string]int32{"milan": 1, "turin": 1, "rome": 1}, []string{"3"}, []string{"rome"}},
		"the price of all nodes":     {map[string]int32{"milan": 1, "turin": 3}, []string{"3"}, []string{"milan"}},
		"places beyond the cheapest": {map[string]int32{"milan": 1, "turin": 2}, []string{"3"}, []string{"turin"}},
		"the cheapest of all, first": {map[string]int32{"all": 1, "milan": 1}, []string{"3"}, []string{"all"}},
		"without a price, size":      {map[string]int32{"small": 1, "free": 1}, []string{"1"}, []string{"small"}},
		"one":                        {map[string]int32{"milan": 1}, []string{"3"}, []string{"milan"}},
		"pods without requests":      {map[string]int32{"milan": 1, "turin": 1}, []string{"0"}, []string{"turin"}},
		"no pods":                    {map[string]int32{"milan": 1, "turin": 1}, nil, []string{"turin"}},
		"others are left to CA": {map[string]int32{"elsewhere": 1, "milan": 1, "turin": 1, "x": 7}, []string{"3"},
			[]string{"elsewhere", "turin", "x"}},
		"others alone": {map[string]int32{"elsewhere": 1, "x": 7}, []string{"3"}, []string{"elsewhere", "x"}},
		"none":         {nil, nil, nil},
	} {
		for _, later := range []bool{false, true} {
			var options []*protos.Option
			for group, nodes := range tc.options {
				options = append(options, optionOf(t, group, nodes, later, tc.cpus...))
			}
			got, err := pickOption(t, conn, options...)
			require.NoError(t, err, name)
			require.ElementsMatch(t, tc.want, got, "%s, second generation: %t", name, later)
		}
	}
}

// Options help different pods, so the expander compares their prices for the requested pods. If options are equal,
// CA's next expander chooses one.
func TestExpanderComparesPricesPerRequestedPods(t *testing.T) {
	m := &fakeMarket{}
	m.nodes("milan", 5, 0.3)
	m.nodes("turin", 5, 0.2)
	conn := expanderSite(t, m)
	got, err := pickOption(t, conn, optionOf(t, "milan", 1, false, "2", "2"), optionOf(t, "turin", 1, true, "1"))
	require.NoError(t, err)
	require.Equal(t, []string{"milan"}, got)
	got, err = pickOption(t, conn, optionOf(t, "turin", 1, false, "2"), optionOf(t, "all", 1, true, "2"))
	require.NoError(t, err)
	require.Equal(t, []string{"turin", "all"}, got)
	got, err = pickOption(t, conn, optionOf(t, "turin", 2, false, "2", "2"), optionOf(t, "all", 1, false, "2"))
	require.NoError(t, err)
	require.Equal(t, []string{"turin", "all"}, got, "as dear for each pod, and as full")
}

// The expander answers an unreadable request with an error. CA then keeps all options. After an empty answer CA would
// keep no option.
func TestUnreadableExpanderRequestIsAnError(t *testing.T) {
	m := &fakeMarket{}
	m.nodes("milan", 5, 0.3)
	conn := expanderSite(t, m)
	broken := optionOf(t, "milan", 1, false)
	broken.ProtoReflect().SetUnknown(protowire.AppendBytes(
		protowire.AppendTag(nil, fieldOptionPod, protowire.BytesType), []byte{0xff}))
	for _, o := range []*protos.Option{{}, {NodeGroupId: "milan"}, {NodeGroupId: "milan", NodeCount: -1}, {NodeCount: 1},
		broken} {
		_, err := pickOption(t, conn, optionOf(t, "milan", 1, false, "1"), o)
		requireCode(t, codes.InvalidArgument, err)
	}
}

// CA's client of the expander has no certificate. With TLS, this client can call the expander and no other service.
func TestExpanderOverTLS(t *testing.T) {
	files, by := tlsFiles(t)
	files.Anonymous = true
	creds, err := TLS(files, []string{"localhost"}, quiet)
	require.NoError(t, err)
	s := loaded(t, newFake(), specs("cpu")...)
	address := serveTCPWith(t, s, ServeOptions{Credentials: creds, Expander: true})
	connect := func(certificates ...tls.Certificate) *grpc.ClientConn {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: by.Pool(), ServerName: "localhost", Certificates: certificates})))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		return conn
	}
	anonymous, known := connect(), connect(by.Issue(t).TLS())
	for name, conn := range map[string]*grpc.ClientConn{"anonymous": anonymous, "known": known} {
		got, err := pickOption(t, conn, optionOf(t, "cpu", 1, false, "1"))
		require.NoError(t, err, name)
		require.Equal(t, []string{"cpu"}, got, name)
	}
	_, err = cloudprotos.NewCloudProviderClient(known).NodeGroups(t.Context(), &cloudprotos.NodeGroupsRequest{})
	require.NoError(t, err)
	_, err = cloudprotos.NewCloudProviderClient(anonymous).NodeGroups(t.Context(), &cloudprotos.NodeGroupsRequest{})
	requireCode(t, codes.Unauthenticated, err)
	_, err = healthpb.NewHealthClient(anonymous).Check(t.Context(), &healthpb.HealthCheckRequest{})
	requireCode(t, codes.Unauthenticated, err)
	watch, err := healthpb.NewHealthClient(anonymous).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	requireCode(t, codes.Unauthenticated, err)

	stranger := connect(testkit.NewAuthority(t).Issue(t).TLS())
	_, err = pickOption(t, stranger, optionOf(t, "cpu", 1, false, "1"))
	requireCode(t, codes.Unavailable, err)
}

// Without ServeOptions.Expander, the server does not serve the expander.
func TestExpanderIsOffByDefault(t *testing.T) {
	_, err := pickOption(t, dial(t, loaded(t, newFake(), specs("cpu")...), ServeOptions{}), optionOf(t, "cpu", 1, false))
	requireCode(t, codes.Unimplemented, err)
}
