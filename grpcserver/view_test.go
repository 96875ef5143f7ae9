package grpcserver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// direct calls the server's methods in a synctest bubble, where time is fake.
type direct struct {
	t *testing.T
	s *Server
}

func (d direct) within(timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(d.t.Context(), timeout)
	d.t.Cleanup(cancel)
	return ctx
}

func (d direct) increase(timeout time.Duration, delta int32) error {
	_, err := d.s.NodeGroupIncreaseSize(d.within(timeout), &protos.NodeGroupIncreaseSizeRequest{Id: "cpu", Delta: delta})
	return err
}

func (d direct) refresh() error {
	_, err := d.s.Refresh(d.within(5*time.Second), &protos.RefreshRequest{})
	return err
}

func (d direct) target() int {
	d.t.Helper()
	resp, err := d.s.NodeGroupTargetSize(d.within(time.Second), &protos.NodeGroupTargetSizeRequest{Id: "cpu"})
	require.NoError(d.t, err)
	return int(resp.GetTargetSize())
}

func bubble(t *testing.T, test func(t *testing.T, d direct, f *fakeGroups)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		test(t, direct{t, loaded(t, f, spec("cpu", 0, 5))}, f)
	})
}

// The lost answer of an operation that has run turns into OK, as long as the caller waits long enough.
func TestLostAnswerIsFoundAgain(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, booked: true} })
		began := time.Now()
		require.NoError(t, d.increase(5*time.Second, 2))
		require.Equal(t, taskTimeout, time.Since(began), "not looked at sooner")
		require.Equal(t, 2, d.target())
		require.NoError(t, d.refresh(), "not dirty")
	})
}

// An impatient caller learns that nothing is known; until it is, Refresh alone fails.
func TestLostAnswerMakesTheGroupDirty(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, booked: true} })
		err := d.increase(time.Second, 2)
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "outcome unknown")
		require.Zero(t, d.target(), "the last snapshot")
		reads := f.called("snapshot")
		err = d.refresh()
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "cpu")
		require.Equal(t, reads, f.called("snapshot"), "not re-read too soon")

		time.Sleep(500*time.Millisecond + taskTimeout)
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
	})
}

// An operation may run as late as its expiry: a look before that may not call the group clean.
func TestLateOperationIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, late: 4 * time.Second} })
		began := time.Now()
		requireCode(t, codes.Unavailable, d.increase(5*time.Second, 2))
		require.Equal(t, taskTimeout, time.Since(began))
		requireCode(t, codes.Unavailable, d.refresh())
		time.Sleep(3 * time.Second) // it has run, but could still be running
		requireCode(t, codes.Unavailable, d.refresh())
		time.Sleep(1500 * time.Millisecond) // 5 s - 0.5 s + 2 s after the call
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
	})
}

// A mutation between a lost one and its resolution is judged by the group, and does not make the group clean.
func TestMutationOfADirtyGroup(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		require.NoError(t, d.increase(time.Second, 3))
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, booked: true} })
		requireCode(t, codes.Unavailable, d.increase(time.Second, 2))
		requireCode(t, codes.OutOfRange, d.increase(time.Second, 2))
		require.Equal(t, 3, f.called("grow"), "asked, since the view is not to be trusted")
		requireCode(t, codes.Unavailable, d.refresh())
	})
}

// The view of a dirty group refuses nothing: a lost deletion may have made room.
func TestDirtyViewRefusesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		require.NoError(t, d.increase(time.Second, 5))
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, booked: true} })
		_, err := d.s.NodeGroupDeleteNodes(d.within(time.Second), &protos.NodeGroupDeleteNodesRequest{Id: "cpu",
			Nodes: []*protos.ExternalGrpcNode{{ProviderID: "liqo://cpu/cpu-t0-1"}}})
		requireCode(t, codes.Unavailable, err)
		require.NoError(t, d.increase(time.Second, 1))
		require.Equal(t, 5, d.target())
	})
}

// What an earlier lost operation books late is not taken for the next one's.
func TestLateOperationIsNotMistakenForTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, late: 1500 * time.Millisecond} })
		requireCode(t, codes.Unavailable, d.increase(time.Second, 2))
		f.set(func(f *fakeGroups) { f.lose = lose{active: true} })
		requireCode(t, codes.Unavailable, d.increase(5*time.Second, 2))
		time.Sleep(10 * time.Second)
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
	})
}

// Deleting is idempotent, so its lost answer is found again by what was asked for.
func TestLostDeletion(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		require.NoError(t, d.increase(time.Second, 2))
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, booked: true} })
		_, err := d.s.NodeGroupDeleteNodes(d.within(5*time.Second), &protos.NodeGroupDeleteNodesRequest{Id: "cpu",
			Nodes: []*protos.ExternalGrpcNode{{ProviderID: "liqo://cpu/cpu-t0-1"}}})
		require.NoError(t, err)
		require.Equal(t, 1, d.target())
		require.NoError(t, d.refresh())
	})
}

// Mutations of one group queue; who cannot wait changes nothing.
func TestMutationsTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.delay = 3 * time.Second })
		first := make(chan error, 1)
		go func() { first <- d.increase(5*time.Second, 1) }()
		synctest.Wait()
		began := time.Now()
		requireCode(t, codes.DeadlineExceeded, d.increase(time.Second, 1))
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, <-first)
		require.Equal(t, 1, f.called("grow"))
		require.Equal(t, 1, d.target())
	})
}

// A snapshot that was read before a mutation and arrives after it does not undo the mutation in the view.
func TestOlderSnapshotNeverReplacesANewerOne(t *testing.T) {
	f := newFake()
	s := loaded(t, f, spec("cpu", 0, 5))
	began := time.Now()
	old, err := f.Snapshot(t.Context(), "cpu")
	require.NoError(t, err)
	d := direct{t, s}
	require.NoError(t, d.increase(time.Second, 2))
	require.NoError(t, s.byID["cpu"].put(old, began))
	require.Equal(t, 2, d.target())
}

func TestStateThatWentBackIsNotServed(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		old, err := f.Snapshot(t.Context(), "cpu")
		require.NoError(t, err)
		require.NoError(t, d.increase(time.Second, 2))
		f.set(func(f *fakeGroups) { f.groups["cpu"].snap = old })
		time.Sleep(time.Second)
		err = d.refresh()
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "went back")
		require.Equal(t, 2, d.target())
	})
}

func TestBeforeTheFirstLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.down = true
		d := direct{t, newServer(t, f, spec("cpu", 1, 5))}

		groups, err := d.s.NodeGroups(t.Context(), &protos.NodeGroupsRequest{})
		require.NoError(t, err)
		require.Len(t, groups.GetNodeGroups(), 1, "the config is known without any store")
		require.EqualValues(t, 5, groups.GetNodeGroups()[0].GetMaxSize())
		_, err = d.s.NodeGroupTargetSize(t.Context(), &protos.NodeGroupTargetSizeRequest{Id: "cpu"})
		requireCode(t, codes.Unavailable, err)
		_, err = d.s.NodeGroupNodes(t.Context(), &protos.NodeGroupNodesRequest{Id: "cpu"})
		requireCode(t, codes.Unavailable, err)
		_, err = d.s.NodeGroupTemplateNodeInfo(t.Context(), &protos.NodeGroupTemplateNodeInfoRequest{Id: "cpu"})
		require.NoError(t, err)
		resp, err := d.s.NodeGroupForNode(t.Context(), &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{ProviderID: "liqo://cpu/cpu-t0-1"}})
		require.NoError(t, err)
		require.Empty(t, resp.GetNodeGroup().GetId())

		// A read that comes while the view is being loaded gets its answer.
		f.set(func(f *fakeGroups) { f.down = false })
		target := make(chan error, 1)
		go func() {
			_, err := d.s.NodeGroupTargetSize(t.Context(), &protos.NodeGroupTargetSizeRequest{Id: "cpu"})
			target <- err
		}()
		synctest.Wait()
		require.NoError(t, d.s.Start(t.Context()))
		require.NoError(t, <-target)
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

func TestFreshness(t *testing.T) {
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
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.True(t, told.Load(), "kept warm without CA")

		f.set(func(f *fakeGroups) { f.down = true })
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.True(t, told.Load())
		time.Sleep(40 * time.Second)
		synctest.Wait()
		require.False(t, told.Load())

		f.set(func(f *fakeGroups) { f.down = false })
		time.Sleep(retryMost + time.Second)
		synctest.Wait()
		require.True(t, told.Load())
		cancel()
		<-done
	})
}

func TestRefreshConfigures(t *testing.T) {
	f := newFake()
	first := loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 2))
	require.Equal(t, 2, f.called("configure"), "both were missing")
	require.NoError(t, direct{t, first}.refresh())
	require.Equal(t, 2, f.called("configure"), "specs in force")

	// A restart with another config: one group has changed.
	second := loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 7))
	require.Equal(t, 3, f.called("configure"))
	require.Equal(t, 7, f.groups["gpu"].snap.Max)
	groups, err := second.NodeGroups(t.Context(), &protos.NodeGroupsRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 7, groups.GetNodeGroups()[1].GetMaxSize())
}

// One broken group fails Refresh by name; the others are read all the same.
func TestRefreshNamesTheBrokenGroup(t *testing.T) {
	f := newFake()
	c := newClient(t, loaded(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5), spec("big", 0, 5)))
	_, err := f.Grow(t.Context(), "cpu", 2)
	require.NoError(t, err)
	for _, broken := range []error{
		fleet.ErrUnavailable, fleet.Refuse(fleet.RefusedNotInitialised, "recovering"), errors.New("decode memo: broken"),
		fleet.Refuse(fleet.RefusedInvalid, "bad spec"),
	} {
		f.set(func(f *fakeGroups) { f.failing["gpu"] = broken })
		err = c.refresh()
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "cannot read gpu: gpu: ")
		require.ErrorContains(t, err, broken.Error())
		require.Equal(t, 2, c.target("cpu"))
		require.Zero(t, c.target("gpu"))
	}
}

// A snapshot of another group, or an empty one, is no answer.
func TestForeignSnapshotIsRefused(t *testing.T) {
	g := newGroup(spec("cpu", 0, 1))
	require.ErrorIs(t, g.put(fleet.Snapshot{}, time.Now()), fleet.ErrUnavailable)
	require.ErrorIs(t, g.put(fleet.Snapshot{Group: "gpu", Epoch: "a"}, time.Now()), fleet.ErrUnavailable)
	require.Nil(t, g.picture.Load())
}
