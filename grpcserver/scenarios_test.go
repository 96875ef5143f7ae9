package grpcserver

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These tests cover the scenarios of the contract with CA that concern single RPCs and that TestConformance does not
// cover. The numbers S1 to S37 come from docs/cluster-autoscaler.md.

func TestS2GroupHasTheLastWord(t *testing.T) {
	f := newFake()
	d := direct{t, loaded(t, f, spec("cpu", 0, 3))}
	// Another replica of the server has grown the group to its max. This server does not know it yet, but its
	// increase is refused.
	_, err := f.Grow(t.Context(), "cpu", 3, 0, fleet.Position{})
	require.NoError(t, err)
	requireCode(t, codes.OutOfRange, d.increase(time.Second, 1))
	require.Equal(t, 1+1, f.called("grow"))
	require.Equal(t, 3, f.target("cpu"))
}

// Callers give up at random times. An operation that was answered with OK is booked, and an operation that was
// answered with an error is not booked.
func TestS3AbandonedCallsBookNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := loaded(t, f, spec("cpu", 0, 1000))
		random := rand.New(rand.NewPCG(1, 2))
		booked := 0
		for range 100 {
			f.set(func(f *fakeGroups) { f.delay = time.Duration(random.IntN(1500)) * time.Millisecond })
			before := f.target("cpu")
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2500))*time.Millisecond)
			if random.IntN(10) == 0 {
				cancel()
			}
			_, err := s.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: "cpu", Delta: 1})
			cancel()
			grown := f.target("cpu") - before
			if err == nil {
				booked++
				require.Equal(t, 1, grown)
				continue
			}
			require.Contains(t, []codes.Code{codes.DeadlineExceeded, codes.Canceled}, status.Code(err))
			require.Zero(t, grown)
		}
		require.Greater(t, booked, 10)
		require.Less(t, booked, 90)
	})
}

// The server finds the group of a node only by the node's providerID, and ignores labels and names. A released node
// belongs to no group.
func TestS4OnlyTheProviderIDIdentifiesAGroup(t *testing.T) {
	f := newFake()
	c := newClient(t, loaded(t, f, spec("cpu", 1, 5), spec("gpu", 0, 2)))
	require.NoError(t, c.increase("cpu", 3))
	ids := c.ids("cpu")
	require.NoError(t, c.remove("cpu", ids[2]))

	got := c.groupOf(&protos.ExternalGrpcNode{Name: "x", ProviderID: ids[0],
		Labels: map[string]string{fleet.LabelGroup: "gpu"}})
	require.Equal(t, "cpu", got.GetId())
	require.EqualValues(t, 1, got.GetMinSize())
	require.EqualValues(t, 5, got.GetMaxSize())
	got = c.groupOf(&protos.ExternalGrpcNode{Name: ids[2], ProviderID: ids[2]})
	require.Equal(t, "cpu", got.GetId(), "the placeholder of an instance that was just released")
	foreign := map[string]*protos.ExternalGrpcNode{
		"none":                        nil,
		"no providerID":               {Name: "lca-cpu-t0-1-1", Labels: map[string]string{fleet.LabelGroup: "cpu"}},
		"another cloud":               {Name: "a", ProviderID: "aws:///eu-central-1a/i-0123"},
		"a group we do not list":      {Name: "a", ProviderID: "liqo://other/other-t0-1"},
		"an unknown instance":         {Name: "a", ProviderID: "liqo://cpu/cpu-t0-99"},
		"a released instance":         {Name: "a", ProviderID: ids[2]},
		"a name of another group":     {Name: "a", ProviderID: "liqo://gpu/cpu-t0-1"},
		"our scheme and nothing else": {Name: "a", ProviderID: "liqo://"},
		"a broken id":                 {Name: "a", ProviderID: ids[0] + "/x"},
		"an upcoming fake without id": {Name: "template-node-for-cpu-123-upcoming-0"},
	}
	for name, node := range foreign {
		got := c.groupOf(node)
		require.NotNil(t, got, name)
		require.Empty(t, got.GetId(), name)
	}
}

// While the store is down, only Refresh fails. Reads use the last snapshot, and mutations change nothing.
func TestS34OnlyRefreshFailsWithoutTheStore(t *testing.T) {
	f := newFake()
	c := newClient(t, loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5)))
	require.NoError(t, c.increase("cpu", 2))
	ids := c.ids("cpu")

	f.set(func(f *fakeGroups) { f.down = true })
	err := c.refresh()
	requireCode(t, codes.Unavailable, err)
	require.ErrorContains(t, err, "cpu, gpu")
	require.Equal(t, ids, c.ids("cpu"))
	require.Equal(t, 2, c.target("cpu"))
	require.Equal(t, "cpu", c.groupOf(&protos.ExternalGrpcNode{ProviderID: ids[0]}).GetId())
	groups, err := c.NodeGroups(c.ctx(), &protos.NodeGroupsRequest{})
	require.NoError(t, err)
	require.Len(t, groups.GetNodeGroups(), 2)
	requireCode(t, codes.Unavailable, c.increase("cpu", 1))
	requireCode(t, codes.Unavailable, c.remove("cpu", ids[0]))
	require.Equal(t, 2, c.target("cpu"))

	f.set(func(f *fakeGroups) { f.down = false })
	require.NoError(t, c.refresh(), "nothing is dirty")
	require.Equal(t, 2, c.target("cpu"))
}

func TestFailedInstanceStaysCountedWithItsReason(t *testing.T) {
	f := newFake()
	c := newClient(t, loaded(t, f, spec("cpu", 0, 5)))
	require.NoError(t, c.increase("cpu", 4))
	f.change("cpu", func(l *fleet.Ledger) {
		l.Entries[0].Phase, l.Entries[0].Failure = fleet.Failed, fleet.NewFailure(fleet.CodeNoOffer, "", "",
			"no offer has a GPU")
		l.Entries[1].Phase, l.Entries[1].Failure = fleet.Failed, fleet.NewFailure(fleet.CodeTimeout, "", "node",
			"node not registered")
		l.Entries[2].Phase = fleet.Failed // no reason is recorded; an empty code would hide the failure
		l.Entries[3].Phase, l.Entries[3].Failure = fleet.Discovering, fleet.NewFailure(fleet.CodeRefused, "p", "",
			"an earlier attempt")
	})
	require.NoError(t, c.refresh())
	require.Equal(t, 4, c.target("cpu"))

	type seen struct {
		code, message string
		class         int32
	}
	want := []seen{
		{"NoOffer", "no offer has a GPU", classOutOfResources},
		{"Timeout", "node not registered", classOther},
		{"Internal", "failed without a reason", classOther},
		{},
	}
	for i, n := range c.nodes("cpu") {
		require.Equal(t, creating, n.GetStatus().GetInstanceState())
		e := n.GetStatus().GetErrorInfo()
		require.Equal(t, want[i], seen{e.GetErrorCode(), e.GetErrorMessage(), e.GetInstanceErrorClass()})
	}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil { // require must not end the test from another goroutine
		t.Error(err)
	}
}
