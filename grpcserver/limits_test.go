package grpcserver

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func limited(t *testing.T, f *fakeGroups, limits Limits, specs ...fleet.GroupSpec) (client, *Server) {
	t.Helper()
	s, err := New(Options{Groups: f, Specs: specs, Limits: limits, Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	return newClient(t, s), s
}

// The server refuses an increase if all groups together would then exceed a limit. Each node has 4 CPUs and 8 GiB.
func TestLimitsApplyToAllGroupsTogether(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits Limits
		want   string
	}{
		{"nodes", Limits{Nodes: ptr.To(5)},
			"increase node group gpu: limits.nodes is 5, 3 exist and 3 more are requested"},
		{"cpu", Limits{CPU: ptr.To(resource.MustParse("20"))},
			"increase node group gpu: limits.cpu is 20, 12 is in use and 12 more is requested"},
		{"memory", Limits{Memory: ptr.To(resource.MustParse("47Gi"))},
			"increase node group gpu: limits.memory is 47Gi, 24Gi is in use and 24Gi more is requested"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake()
			c, _ := limited(t, f, test.limits, spec("cpu", 0, 10), spec("gpu", 0, 10))
			require.NoError(t, c.increase("cpu", 3))
			err := c.increase("gpu", 3)
			requireCode(t, codes.OutOfRange, err)
			require.Equal(t, test.want, status.Convert(err).Message())
			require.Zero(t, c.target("gpu"))
			require.Equal(t, 1, f.called("grow"), "the group was not called")
			require.NoError(t, c.increase("gpu", 2))

			// A deleted instance no longer counts, so another instance may be created.
			require.NoError(t, c.remove("cpu", c.ids("cpu")...))
			require.NoError(t, c.increase("gpu", 3))
		})
	}
}

// The max that CA sees stays within the limits. Otherwise CA would request a size that the server refuses, and would
// back off.
func TestMaxStaysWithinTheLimits(t *testing.T) {
	c, _ := limited(t, newFake(), Limits{Nodes: ptr.To(5)}, spec("cpu", 0, 10), spec("gpu", 0, 2),
		spec("min", 1, 10))
	most := func() string {
		g := c.groups()
		return fmt.Sprint(g["cpu"].GetMaxSize(), g["gpu"].GetMaxSize(), g["min"].GetMaxSize())
	}
	require.Equal(t, "5 2 5", most())
	require.NoError(t, c.increase("cpu", 4))
	require.Equal(t, "5 1 1", most())
	require.NoError(t, c.increase("gpu", 1))
	require.Equal(t, "4 1 1", most(), "never below what is, nor below min")
	require.NoError(t, c.remove("cpu", c.ids("cpu")...))
	require.Equal(t, "4 2 4", most())
}

// CA splits a scale-out between the groups with the same balancing label. The server does not refuse CA's plan for
// these groups.
func TestBalancedScaleOutIsNotRefusedByLimits(t *testing.T) {
	full := balancing("full", "web")
	full.Max = 1
	c, _ := limited(t, newFake(), Limits{Nodes: ptr.To(5)}, balancing("a", "web"), balancing("b", "web"), full,
		balancing("c", "other"))
	require.NoError(t, c.increase("full", 1))
	most := func() string {
		g := c.groups()
		return fmt.Sprint(g["a"].GetMaxSize(), g["b"].GetMaxSize(), g["full"].GetMaxSize(), g["c"].GetMaxSize())
	}
	require.Equal(t, "2 2 1 4", most())
	require.NoError(t, c.increase("a", 2))
	require.NoError(t, c.increase("b", 1))
	require.Equal(t, "3 2 1 1", most(), "one group gets the last node")
}

// Concurrent growth of several groups exceeds no limit.
func TestLimitsHoldUnderConcurrency(t *testing.T) {
	f := newFake()
	ids := []string{"a", "b", "c", "d", "e", "f"}
	var all []fleet.GroupSpec
	for _, id := range ids {
		all = append(all, spec(id, 0, 10))
	}
	c, _ := limited(t, f, Limits{Nodes: ptr.To(10)}, all...)
	var calls sync.WaitGroup
	for _, id := range ids {
		calls.Go(func() {
			for range 5 {
				_ = c.increase(id, 1)
			}
		})
	}
	calls.Wait()
	sum := 0
	for _, id := range ids {
		sum += c.target(id)
	}
	require.Equal(t, 10, sum)
}

// While the number of counted instances is unknown, no group grows.
func TestUnknownCountStopsGrowth(t *testing.T) {
	f := newFake()
	s, err := New(Options{Groups: f, Specs: specs("cpu", "gpu"), Limits: Limits{Nodes: ptr.To(5)}, Logger: quiet})
	require.NoError(t, err)
	f.set(func(f *fakeGroups) { f.failing["gpu"] = fleet.ErrUnavailable })
	d := direct{t, s}
	require.NoError(t, d.refresh())
	err = d.increase(time.Second, 1)
	requireCode(t, codes.Unavailable, err)
	require.ErrorContains(t, err, "until node group gpu has been read")
	f.set(func(f *fakeGroups) { f.failing = map[string]error{} })
	require.NoError(t, d.refresh())
	require.NoError(t, d.increase(time.Second, 1))

	s.roster.Load().byID["gpu"].markUnknown(time.Now().Add(time.Hour))
	require.Equal(t, 1, s.maxForCA(s.roster.Load(), s.roster.Load().byID["cpu"]), "no more than would not be refused")
	requireCode(t, codes.Unavailable, d.increase(time.Second, 1))
}
