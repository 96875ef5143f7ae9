package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestCallsBeforeTheFirstLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.down = true
		d := direct{t, newServer(t, f, spec("cpu", 1, 5))}

		groups, err := d.s.NodeGroups(t.Context(), &protos.NodeGroupsRequest{})
		require.NoError(t, err)
		require.Empty(t, groups.GetNodeGroups(), "a group that was never read is not listed")
		_, err = d.s.NodeGroupTargetSize(t.Context(), &protos.NodeGroupTargetSizeRequest{Id: "cpu"})
		requireCode(t, codes.Unavailable, err)
		_, err = d.s.NodeGroupNodes(t.Context(), &protos.NodeGroupNodesRequest{Id: "cpu"})
		requireCode(t, codes.Unavailable, err)
		_, err = d.s.NodeGroupTemplateNodeInfo(t.Context(), &protos.NodeGroupTemplateNodeInfoRequest{Id: "cpu"})
		require.NoError(t, err)
		resp, err := d.s.NodeGroupForNode(t.Context(),
			&protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{ProviderID: "liqo://cpu/cpu-t0-1"}})
		require.NoError(t, err)
		require.Empty(t, resp.GetNodeGroup().GetId())

		// A call of NodeGroups that arrives while the server loads its view gets an answer.
		f.set(func(f *fakeGroups) { f.down = false })
		target, listed := make(chan error, 1), make(chan int, 1)
		go func() {
			groups, _ := d.s.NodeGroups(t.Context(), &protos.NodeGroupsRequest{})
			listed <- len(groups.GetNodeGroups())
		}()
		go func() {
			_, err := d.s.NodeGroupTargetSize(t.Context(), &protos.NodeGroupTargetSizeRequest{Id: "cpu"})
			target <- err
		}()
		synctest.Wait()
		require.NoError(t, d.s.Start(t.Context()))
		require.NoError(t, <-target)
		require.Equal(t, 1, <-listed)
	})
}

func TestStartRetriesUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.down = true
		s := newServer(t, f, spec("cpu", 0, 5))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.Start(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, fleet.ErrUnavailable)
		require.Greater(t, f.called("snapshot"), 10)

		time.AfterFunc(10*time.Second, func() { f.set(func(f *fakeGroups) { f.down = false }) })
		require.NoError(t, s.Start(t.Context()))
	})
}

func TestServerIsFreshAfterARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := newServer(t, f, spec("cpu", 0, 5))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		require.False(t, s.Fresh())
		var told atomic.Bool
		done := make(chan struct{})
		go func() {
			s.KeepWarm(ctx, func() { told.Store(s.Fresh()) })
			close(done)
		}()
		synctest.Wait()
		require.True(t, told.Load())
		pass(10 * time.Minute)
		synctest.Wait()
		require.True(t, told.Load(), "kept warm without CA")

		f.set(func(f *fakeGroups) { f.down = true })
		pass(30 * time.Second)
		synctest.Wait()
		require.True(t, told.Load())
		pass(40 * time.Second)
		synctest.Wait()
		require.False(t, told.Load())

		f.set(func(f *fakeGroups) { f.down = false })
		pass(retryMax + time.Second)
		synctest.Wait()
		require.True(t, told.Load())
		cancel()
		<-done
	})
}

func TestRefreshConfigures(t *testing.T) {
	f := newFake()
	bare := spec("cpu", 0, 5)
	bare.Budgets = fleet.Budgets{}
	first := loaded(t, f, bare, spec("gpu", 0, 2))
	require.Equal(t, 2, f.called("configure"), "both were missing")
	require.NoError(t, direct{t, first}.refresh())
	require.Equal(t, 2, f.called("configure"), "specs in force")

	// The server restarts with another config, in which one group has changed.
	second := loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 7))
	require.Equal(t, 3, f.called("configure"))
	require.Equal(t, 7, f.published("gpu").Max)
	groups, err := second.NodeGroups(t.Context(), &protos.NodeGroupsRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 7, groups.GetNodeGroups()[1].GetMaxSize())
}

// The server configures a group that does not run, or that runs with another spec. After a failed read the server
// does not know whether the group runs, or with which spec. It then configures nothing.
func TestRefreshConfiguresOnlyWhatItKnows(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		calls int
	}{
		"unread":      {fmt.Errorf("describe group gpu: %w", fleet.ErrUnavailable), 0},
		"not running": {fmt.Errorf("nodegroup/gpu: %w: %w", fleet.ErrNotRunning, fleet.ErrUnavailable), 1},
		"not recovered": {fmt.Errorf("nodegroup/gpu: %w: %w", fleet.Refuse(fleet.RefusedNotInitialised, "recovering"),
			fleet.ErrUnavailable), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			s := loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 2))
			before := f.called("configure")
			f.set(func(f *fakeGroups) { f.failing["gpu"] = c.err })
			require.NoError(t, direct{t, s}.refresh())
			require.Equal(t, c.calls, f.called("configure")-before)
		})
	}
}

// gRPC sends the error in a header, so its size is bounded. The error names some groups, counts the other groups, and
// contains the reason of the first group.
func TestErrorForManyGroupsIsBounded(t *testing.T) {
	var list []*group
	var errs []error
	for n := range maxNamed + 4 {
		list = append(list, &group{id: fmt.Sprintf("g%02d", n)})
		errs = append(errs, fmt.Errorf("reason of g%02d", n))
	}
	errs[0] = nil
	require.NoError(t, summary(list, make([]error, len(list))))
	err := summary(list, errs)
	require.ErrorIs(t, err, errs[1])
	require.ErrorContains(t, err, "cannot read g01, ")
	require.ErrorContains(t, err, ", g20 and 3 more: g01: reason of g01")
	require.NotContains(t, err.Error(), "g21")
	require.ErrorContains(t, summary(list[:2], errs[:2]), "cannot read g01: g01: reason of g01")
	require.ErrorContains(t, summary(list[1:21], errs[1:21]), ", g20: g01: reason of g01", "twenty are named")
	require.ErrorContains(t, summary(list[1:22], errs[1:22]), ", g20 and 1 more: g01: ")
}

// Concurrent calls of Refresh share their reads. Each call sees every operation that was booked before the call.
func TestConcurrentRefreshesShareReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d := direct{t, loaded(t, f, spec("cpu", 0, 5))}
		was := f.called("snapshot")
		f.set(func(f *fakeGroups) { f.slowRead = time.Second })
		done := make(chan error, 10)
		refresh := func() { done <- d.refresh() }
		pass(time.Millisecond)
		for range 9 {
			go refresh()
		}
		pass(time.Second / 2)
		require.Equal(t, was+1, f.called("snapshot"), "the first one reads, the others wait")
		_, err := f.Grow(t.Context(), "cpu", 1, 0, fleet.Position{})
		require.NoError(t, err)
		go refresh()
		for range 10 {
			require.NoError(t, <-done)
		}
		require.Equal(t, was+2, f.called("snapshot"), "the second one reads for all that came before it began")
		require.Equal(t, 1, d.target())
	})
}

// Another caller reads a group, and this read does not end. A Refresh waits for it at most as long as for its own
// read, and the other groups are not delayed.
func TestRefreshBoundsItsWaitForAnotherRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d := direct{t, loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5))}
		require.True(t, d.s.roster.Load().byID["cpu"].reading.TryAcquire(1)) // another caller reads the group
		_, err := f.Grow(t.Context(), "gpu", 1, 0, fleet.Position{})
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, d.refresh())
		require.Equal(t, readTimeout, time.Since(began))
		gpu, cpu := d.s.roster.Load().byID["gpu"], d.s.roster.Load().byID["cpu"]
		require.Equal(t, 1, gpu.picture.Load().Target)
		require.ErrorContains(t, cpu.unusable.Load(), "wait for another read of the group")
	})
}

// configured is a Groups whose reads change after Configure has returned.
type configured struct {
	*fakeGroups
	done atomic.Bool
	read func(fleet.Snapshot) (fleet.Snapshot, error)
}

func (c *configured) Configure(ctx context.Context, spec fleet.GroupSpec, notice fleet.GroupNotice,
	seen fleet.Position) (fleet.Position, error) {
	at, err := c.fakeGroups.Configure(ctx, spec, notice, seen)
	c.done.Store(err == nil && c.read != nil)
	return at, err
}

func (c *configured) Snapshot(ctx context.Context, group string) (fleet.Snapshot, error) {
	snap, err := c.fakeGroups.Snapshot(ctx, group)
	if err == nil && c.done.Load() {
		return c.read(snap)
	}
	return snap, err
}

// When a group does not accept its config, the reason contains the error of the read and the error of Configure.
func TestReasonOfAnUnconfiguredGroupIsComplete(t *testing.T) {
	ended := fmt.Errorf("nodegroup/cpu %w: %w", fleet.ErrNotRunning, fleet.ErrUnavailable)
	for name, c := range map[string]struct {
		failing error // of reads and Configure
		read    func(fleet.Snapshot) (fleet.Snapshot, error)
		says    string
	}{
		"it does not run, and does not begin": {failing: ended,
			says: "nodegroup/cpu does not run: unavailable; configure: nodegroup/cpu does not run: unavailable"},
		"it runs another spec all the same": {says: "configure: spec other is in force instead of ",
			read: func(s fleet.Snapshot) (fleet.Snapshot, error) { s.SpecHash = "other"; return s, nil }},
		"what it runs then cannot be read": {says: "configure: no answer",
			read: func(fleet.Snapshot) (fleet.Snapshot, error) { return fleet.Snapshot{}, errors.New("no answer") }},
		"it shows what it was before": {says: "is older than the operation at ",
			read: func(s fleet.Snapshot) (fleet.Snapshot, error) { s.Revision = 1; return s, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			port, config := &configured{fakeGroups: newFake()}, &fakeConfig{}
			s, err := New(config.options(port, specs("cpu", "gpu")...))
			require.NoError(t, err)
			require.NoError(t, s.Start(t.Context()))
			config.write("v2", spec("cpu", 0, 7), spec("gpu", 0, 5))
			port.read = c.read
			port.set(func(f *fakeGroups) { f.failing["cpu"] = c.failing })
			require.NoError(t, direct{t, s}.refresh())
			require.ErrorContains(t, s.roster.Load().byID["cpu"].unusable.Load(), c.says)
		})
	}
}

// When Temporal answers no read in time, no single group is the cause. Refresh fails, and CA ends its loop.
func TestTemporalThatHangsFailsRefresh(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.hangs = "cpu" })
		err := d.refresh()
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "cannot read cpu: cpu: Temporal does not answer: ")
		require.Nil(t, d.s.roster.Load().byID["cpu"].unusable.Load())
		f.set(func(f *fakeGroups) { f.hangs = "" })
		require.NoError(t, d.refresh())
	})
}
