package grpcserver

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A group that cannot be read does not make Refresh fail. The server serves the group's last snapshot, with the
// target size as max.
func TestGroupThatCannotBeReadFailsNoRefresh(t *testing.T) {
	f := newFake()
	c := newClient(t, loaded(t, f, spec("cpu", 0, 5), spec("gpu", 3, 5)))
	require.NoError(t, c.increase("gpu", 2))
	ids := c.ids("gpu")
	for _, broken := range []error{
		fleet.ErrUnavailable, fleet.Refuse(fleet.RefusedNotInitialised, "recovering"), errors.New("decode memo: broken"),
		fmt.Errorf("%w: %w", fleet.ErrNotRunning, fleet.ErrUnavailable),
	} {
		f.set(func(f *fakeGroups) { f.failing["gpu"] = broken })
		require.NoError(t, c.refresh())
		require.Equal(t, ids, c.ids("gpu"))
		g := c.groups()["gpu"]
		require.EqualValues(t, 2, g.GetMaxSize())
		require.EqualValues(t, 2, g.GetMinSize(), "never above max")
		require.Contains(t, g.GetDebug(), broken.Error())
		require.Equal(t, "gpu", c.groupOf(&protos.ExternalGrpcNode{ProviderID: ids[0]}).GetId())
		grown := f.called("grow")
		err := c.increase("gpu", 1)
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, broken.Error())
		requireCode(t, codes.Unavailable, c.remove("gpu", ids[0]))
		requireCode(t, codes.Unavailable, c.decrease("gpu", -1))
		require.Equal(t, grown, f.called("grow"))
		require.Zero(t, f.called("release")+f.called("shrink"))
		require.NoError(t, c.increase("cpu", 1))

		f.set(func(f *fakeGroups) { f.failing = map[string]error{} })
		require.NoError(t, c.refresh())
		require.EqualValues(t, 5, c.groups()["gpu"].GetMaxSize())
		require.EqualValues(t, 3, c.groups()["gpu"].GetMinSize())
	}
	require.NoError(t, c.remove("gpu", ids[0]))
}

func TestGroupThatWasNeverReadIsNotListed(t *testing.T) {
	f := newFake()
	f.failing["gpu"] = errors.New("decode memo: broken")
	s := loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5))
	c := newClient(t, s)
	require.NoError(t, c.refresh())
	require.Contains(t, c.groups(), "cpu")
	require.NotContains(t, c.groups(), "gpu")
	require.Empty(t, c.groupOf(&protos.ExternalGrpcNode{ProviderID: "liqo://gpu/gpu-t0-1"}).GetId())
	requireCode(t, codes.Unavailable, c.increase("gpu", 1))
	require.True(t, s.Fresh())

	f.set(func(f *fakeGroups) { f.failing = map[string]error{} })
	require.NoError(t, c.refresh())
	require.Contains(t, c.groups(), "gpu")
	require.NoError(t, c.increase("gpu", 1))
}

// A server that has just started waits for a limited time for each group that it cannot read yet. It then continues
// without this group.
func TestStartDoesNotWaitForAnUnreadableGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s, err := New(Options{Groups: f, Specs: specs("cpu", "gpu")})
		require.NoError(t, err)
		d := direct{t, s}
		f.failing["gpu"] = fmt.Errorf("%w: %w", fleet.ErrTemporal, fleet.ErrUnavailable)
		requireCode(t, codes.Unavailable, d.refresh())
		require.False(t, s.Fresh())
		f.set(func(f *fakeGroups) { f.failing, f.slow = map[string]error{}, time.Minute }) // the group does not run yet
		requireCode(t, codes.Unavailable, d.refresh())
		require.False(t, s.Fresh())

		time.Sleep(loadFor)
		f.set(func(f *fakeGroups) { f.failing["gpu"], f.slow = fleet.ErrTemporal, 0 })
		require.NoError(t, d.refresh())
		require.True(t, s.Fresh())
	})
}

// A group refuses a changed spec. It keeps its size until it accepts the spec, even if CA does not call Refresh.
func TestGroupThatRefusesItsSpecKeepsItsSize(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		require.NoError(t, d.increase(time.Second, 2))
		g := d.s.roster.Load().byID["cpu"]
		larger, err := newTerms(spec("cpu", 0, 9))
		require.NoError(t, err)
		g.terms.Store(larger)
		require.True(t, g.turn.TryAcquire(1)) // Configure hangs
		began := time.Now()
		require.NoError(t, d.refresh())
		require.Equal(t, configureTimeout, time.Since(began))
		require.NoError(t, d.s.refreshInTime(t.Context()))
		require.Equal(t, 2, d.s.maxForCA(d.s.roster.Load(), g))
		g.turn.Release(1)
		require.NoError(t, d.refresh())
		require.Equal(t, 9, d.s.maxForCA(d.s.roster.Load(), g))
	})
}

// Temporal may answer for some groups only, for example while it moves a shard, or may be slow for one group. Like any
// fault of one group, this does not affect the other groups. When Temporal answers for no group, it is down.
func TestTemporalDownFailsRefresh(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		d.s = loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5))
		require.NoError(t, d.increase(time.Second, 2))
		most := func(group string) int { return d.s.maxForCA(d.s.roster.Load(), d.s.roster.Load().byID[group]) }
		away := fmt.Errorf("%w: %w", fleet.ErrTemporal, fleet.ErrUnavailable)
		for _, how := range []func(f *fakeGroups){
			func(f *fakeGroups) { f.failing["cpu"] = away },
			func(f *fakeGroups) { f.hangs = "cpu" },
		} {
			f.set(how)
			require.NoError(t, d.refresh())
			require.True(t, d.s.Fresh())
			require.Equal(t, 2, d.target(), "as it was read last")
			require.Equal(t, 2, most("cpu"))
			require.Equal(t, 5, most("gpu"))
			requireCode(t, codes.Unavailable, d.increase(time.Second, 1))
			f.set(func(f *fakeGroups) { f.failing, f.hangs = map[string]error{}, "" })
			require.NoError(t, d.refresh())
			require.Equal(t, 5, most("cpu"))
		}

		f.set(func(f *fakeGroups) { f.failing["cpu"], f.failing["gpu"] = away, away })
		err := d.refresh()
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "cannot read cpu, gpu: cpu: Temporal does not answer")
		require.Equal(t, 5, most("cpu"), "nothing is known against the group")
	})
}

// Temporal does not answer for one group. Refresh still has time to configure another group.
func TestGroupThatHangsLeavesTimeToConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, config := newFake(), &fakeConfig{}
		s, err := New(config.options(f, specs("cpu", "gpu")...))
		require.NoError(t, err)
		d := direct{t, s}
		require.NoError(t, d.refresh())
		f.set(func(f *fakeGroups) { f.hangs, f.slow = "cpu", 900*time.Millisecond })
		config.write("v2", spec("cpu", 0, 5), spec("gpu", 0, 9), spec("disk", 0, 5))
		began := time.Now()
		require.NoError(t, d.refresh())
		require.Less(t, time.Since(began), 5*time.Second)
		require.Equal(t, 9, f.published("gpu").Max)
		require.Contains(t, f.runs(), "disk")
	})
}

// The outcome of an operation may stay unknown because its group cannot be read. Such an operation stops CA for at
// most two minutes.
func TestUnknownOutcomeFailsRefreshForTwoMinutes(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) {
			f.lose = lose{active: true, booked: true}
			f.failing["cpu"] = errors.New("decode memo: broken")
		})
		requireCode(t, codes.Unavailable, d.increase(impatient, 2))
		pass(unknownFor - time.Second)
		err := d.refresh()
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "the outcome of its last operation is unknown")
		pass(time.Second)
		require.NoError(t, d.refresh())
		requireCode(t, codes.Unavailable, d.increase(time.Second, 1))

		f.set(func(f *fakeGroups) { f.failing = map[string]error{} })
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
		require.NoError(t, d.increase(time.Second, 1))
	})
}

// The history of a group was reverted. CA's Refresh brings the group the newer position that the server has seen, and
// the group starts a new epoch. Until then the server serves the group's last state.
func TestRevertedGroupStartsANewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d := direct{t, loaded(t, f, spec("cpu", 0, 5))}
		require.NoError(t, d.increase(time.Second, 1))
		g := d.s.roster.Load().byID["cpu"]
		seen := g.seen()
		booking := &fleet.Booking{Spec: spec("cpu", 0, 5).InstanceSpec, BookedAt: time.Now()}
		f.set(func(f *fakeGroups) {
			l := fleet.NewLedger("cpu", time.Now())
			l.Epoch, l.Began = "t0", time.Time{}
			f.groups["cpu"] = &fakeGroup{ledger: l, exists: []fleet.Found{{
				Attempt: fleet.Attempt{Group: "cpu", Instance: "cpu-t0-1", Number: 1}, Booking: booking,
				Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
			}}}
			spec := spec("cpu", 0, 5)
			_, err := f.groups["cpu"].operate(fleet.Configure, fleet.Request{Spec: &spec})
			require.NoError(t, err)
			l.Revision = seen.Revision - 1
			f.groups["cpu"].publish()
		})
		pass(time.Second)
		require.NoError(t, d.s.refreshInTime(t.Context()), "the config of a server that CA does not ask may be old")
		require.ErrorIs(t, g.unusable.Load().error, errLostHistory)
		require.Equal(t, seen, g.seen())
		require.Equal(t, 1, d.s.maxForCA(d.s.roster.Load(), g))
		err := d.increase(time.Second, 1)
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "lost history")

		require.NoError(t, d.refresh())
		require.True(t, fleet.EpochBefore(seen.Epoch, g.seen().Epoch))
		require.Equal(t, 1, d.target(), "what exists")
		require.NoError(t, d.increase(time.Second, 1))
		require.Equal(t, 2, d.target())
	})
}

// A group that recovers publishes a state before it has listed its objects. The server does not serve this state.
func TestRecoveringGroupIsServedFromItsLastState(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		require.NoError(t, d.increase(time.Second, 2))
		f.set(func(f *fakeGroups) {
			l := fleet.NewLedger("cpu", time.Now())
			l.Commands.Drop(func(fleet.Command) bool { return true })
			l.Commands.Add(fleet.Command{Kind: fleet.CommandInspect}) // the list of the objects takes long
			f.groups["cpu"].ledger = l
			f.groups["cpu"].snap = l.Snapshot(time.Now())
		})
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
		requireCode(t, codes.Unavailable, d.increase(time.Second, 1))
	})
}
