package grpcserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Two replicas run, and CA calls only the first. The second replica must not apply the old config again after a change:
// otherwise the replicas would undo each other's changes without end.
func TestUncalledReplicaChangesNothing(t *testing.T) {
	f := newFake()
	c, _, config := reloading(t, f, specs("cpu", "gpu")...)
	_, other, otherConfig := reloading(t, f, specs("cpu", "gpu")...)

	changed := spec("cpu", 0, 9)
	config.write("v2", changed)
	otherConfig.write("v2", changed)
	require.NoError(t, c.refresh())
	require.Equal(t, []string{"gpu"}, f.ended())
	configured := f.called("configure")
	for range 3 { // the same calls as KeepWarm makes
		require.NoError(t, other.refreshInTime(t.Context()))
	}
	require.Equal(t, changed.Hash(), f.published("cpu").SpecHash)
	require.NotContains(t, f.runs(), "gpu", "it was closed on purpose")
	require.Equal(t, configured, f.called("configure"))
	require.True(t, other.Fresh(), "it can take over at any time")

	_, err := other.Refresh(t.Context(), nil) // the second replica takes over
	require.NoError(t, err)
	require.Equal(t, "v2", other.config.Load().version)
	require.Equal(t, changed.Hash(), f.published("cpu").SpecHash)
}

// A group is added to the config and removed again while CA calls only the first replica. When CA calls the second
// replica later, this replica also serves the group until it is empty.
func TestReplicaThatTakesOverFindsRemovedGroups(t *testing.T) {
	f := newFake()
	c, _, config := reloading(t, f, specs("cpu")...)
	again, _, otherConfig := reloading(t, f, specs("cpu")...)
	config.write("v2", specs("cpu", "gpu")...)
	require.NoError(t, c.refresh())
	require.NoError(t, c.increase("gpu", 2))
	config.write("v3", specs("cpu")...)
	require.NoError(t, c.refresh())
	requireRetired(t, c, "gpu", 2)

	otherConfig.write("v3", specs("cpu")...)
	require.NoError(t, again.refresh())
	requireRetired(t, again, "gpu", 2)
}

// The second replica has found all running groups. Then a group is added and removed on the first replica. The second
// replica finds the group, although its config is the same before and after.
func TestReplicaThatTakesOverListsRunningGroupsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, config := newFake(), &fakeConfig{}
		standby := loaded(t, f, specs("cpu")...)
		other, err := New(config.options(f, specs("cpu", "gpu")...))
		require.NoError(t, err)
		require.NoError(t, other.Start(t.Context()))
		config.write("v1", specs("cpu")...)
		_, err = other.NodeGroupIncreaseSize(t.Context(), &protos.NodeGroupIncreaseSizeRequest{Id: "gpu", Delta: 2})
		require.NoError(t, err)
		pass(standbyAfter + time.Second)
		for _, s := range []*Server{standby, other} {
			_, err = s.Refresh(t.Context(), nil)
			require.NoError(t, err)
			groups, err := s.NodeGroups(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, groups.GetNodeGroups(), 2, "otherwise CA would not count the nodes of gpu as its own")
		}
	})
}

// CA has read a template through the first replica. This template stays in force on the second replica.
func TestReplicaThatTakesOverKeepsTheTemplateInForce(t *testing.T) {
	f := newFake()
	c, _, config := reloading(t, f, specs("cpu")...)
	again, other, otherConfig := reloading(t, f, specs("cpu")...)
	larger := spec("cpu", 0, 5)
	larger.Shape[corev1.ResourceCPU] = resource.MustParse("16")
	config.write("v2", larger)
	require.NoError(t, c.refresh())
	require.NoError(t, c.increase("cpu", 1))
	template := c.template("cpu").String()
	require.NoError(t, other.refreshInTime(t.Context()))

	otherConfig.write("v2", larger)
	require.NoError(t, again.refresh())
	require.Equal(t, template, again.template("cpu").String())
	require.Equal(t, larger.Hash(), f.published("cpu").SpecHash)
	require.Empty(t, kept(other))
}

// Before CA calls a new replica, the replica starts the groups that do not run, because it becomes ready only when
// all groups run.
func TestNewReplicaStartsMissingGroups(t *testing.T) {
	f := newFake()
	s := loaded(t, f, specs("cpu")...)
	require.Equal(t, s.roster.Load().byID["cpu"].terms.Load().hash, f.published("cpu").SpecHash)

	f.set(func(f *fakeGroups) { delete(f.groups, "cpu") }) // an operator has cancelled it
	_, err := s.Refresh(t.Context(), nil)
	require.NoError(t, err)
	require.Contains(t, f.runs(), "cpu")
	require.Equal(t, fleet.Snapshot{}.Target, f.target("cpu"))
}

// CA fails over to the second replica of the server in the middle of a loop. It then calls this replica for a group
// that was added in the meantime, and the replica knows the group. An error would end the loop and clear CA's
// scale-down timers.
func TestStandbyKnowsAGroupThatWasAddedMeanwhile(t *testing.T) {
	f := newFake()
	c, _, config := reloading(t, f, specs("cpu")...)
	standby, _, standbyConfig := reloading(t, f, specs("cpu")...)
	config.write("v2", specs("cpu", "gpu")...)
	require.NoError(t, c.refresh())
	require.NoError(t, c.increase("gpu", 2))

	requireCode(t, codes.NotFound, standby.increase("gpu", 1))
	standbyConfig.write("v2", specs("cpu", "gpu")...)
	require.Equal(t, 2, standby.target("gpu"))
}

// A replica that CA does not call reads a changed config automatically. The server that CA calls changes nothing
// between two Refreshes.
func TestStandbyReadsAChangedConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, config := newFake(), &fakeConfig{}
		s, err := New(config.options(f, specs("cpu")...))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.KeepWarm(ctx, nil)
		pass(time.Minute)
		config.write("v2", specs("cpu", "gpu")...)
		_, err = s.Refresh(ctx, nil)
		require.NoError(t, err)
		config.write("v3", specs("cpu", "gpu", "disk")...)
		pass(standbyAfter - time.Second)
		require.Equal(t, "v2", s.config.Load().version)
		pass(2 * refreshEvery)
		require.Equal(t, "v3", s.config.Load().version)
	})
}
