package grpcserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
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

// impatient is a timeout that is too short to find a lost answer.
const impatient = readEvery + fleet.GiveUpBefore - time.Millisecond

func bubble(t *testing.T, test func(t *testing.T, d direct, f *fakeGroups)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		test(t, direct{t, loaded(t, f, spec("cpu", 0, 5))}, f)
	})
}

// The answer of an operation that has run is lost. When the caller waits long enough, it still gets OK.
func TestPatientCallerGetsOKAfterALostAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		require.NoError(t, d.increase(5*time.Second, 1))
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, booked: true} })
		began := time.Now()
		require.NoError(t, d.increase(5*time.Second, 2))
		require.Equal(t, 500*time.Millisecond, time.Since(began))
		require.Equal(t, 3, d.target())
		require.NoError(t, d.refresh(), "not dirty")
	})
}

// A caller with a short timeout gets the error "unknown outcome". Until the outcome is known, only Refresh fails.
func TestLostAnswerMakesTheGroupDirty(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, booked: true} })
		err := d.increase(impatient, 2)
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "outcome unknown")
		require.Zero(t, d.target(), "the last snapshot")
		reads := f.called("snapshot")
		err = d.refresh()
		requireCode(t, codes.Unavailable, err)
		require.ErrorContains(t, err, "cpu")
		require.Equal(t, reads, f.called("snapshot"), "not re-read too soon")

		pass(impatient - fleet.GiveUpBefore + fleet.TaskTimeout)
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
	})
}

// An operation whose answer is lost may still run until it expires. The group stays dirty after a read before the
// expiry.
func TestGroupStaysDirtyUntilTheOperationExpires(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, late: 6 * time.Second} })
		began := time.Now()
		requireCode(t, codes.Unavailable, d.increase(5*time.Second, 2))
		require.Equal(t, 5*time.Second-fleet.GiveUpBefore, time.Since(began), "CA learns it before its deadline")
		requireCode(t, codes.Unavailable, d.refresh())
		pass(2 * time.Second) // the operation has run, but the server cannot know this yet
		requireCode(t, codes.Unavailable, d.refresh())
		pass(3 * time.Second) // 5 s - 0.5 s + 5 s after the call
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
	})
}

// A read that began before the expiry of a lost operation does not prove the operation's outcome, even when the read
// ends later.
func TestEarlyReadLeavesTheGroupDirty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(&terms{spec: spec("cpu", 0, 10)})
		g.markUnknown(time.Now().Add(time.Second))
		began := time.Now()
		pass(3 * time.Second)
		read := fleet.Snapshot{Group: "cpu", Epoch: "t1", Revision: 1}
		require.NoError(t, g.storeSnapshot(read, began))
		require.True(t, g.isDirty())
		require.NoError(t, g.storeSnapshot(read, time.Now()))
		require.False(t, g.isDirty())
	})
}

// A mutation arrives while the outcome of a lost mutation is unknown. The group decides about the new mutation, but
// the group stays dirty.
func TestMutationDoesNotCleanADirtyGroup(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		require.NoError(t, d.increase(time.Second, 3))
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, booked: true} })
		requireCode(t, codes.Unavailable, d.increase(impatient, 2))
		requireCode(t, codes.OutOfRange, d.increase(impatient, 2))
		require.Equal(t, 3, f.called("grow"), "the group is called, because the view may be wrong")
		requireCode(t, codes.Unavailable, d.refresh())
	})
}

// An earlier lost operation is booked late. The server does not take this booking for the booking of the next
// operation.
func TestLateBookingIsNotTakenForTheNextOperation(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.lose = lose{active: true, late: 1500 * time.Millisecond} })
		requireCode(t, codes.Unavailable, d.increase(impatient, 2))
		f.set(func(f *fakeGroups) { f.lose = lose{active: true} })
		requireCode(t, codes.Unavailable, d.increase(5*time.Second, 2))
		pass(10 * time.Second)
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
	})
}

// When the answer of a deletion is lost, the server looks in the snapshot for the names of the deleted instances.
// This shows the result.
func TestLostDeletionIsFoundByItsNames(t *testing.T) {
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

// Mutations of one group wait for each other. A caller that gives up while it waits changes nothing.
func TestMutationsOfAGroupWait(t *testing.T) {
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

// A snapshot is read before a mutation, and arrives after the mutation. The snapshot does not undo the mutation in
// the view.
func TestOlderSnapshotNeverReplacesANewerOne(t *testing.T) {
	f := newFake()
	s := loaded(t, f, spec("cpu", 0, 5))
	began := time.Now()
	old, err := f.Snapshot(t.Context(), "cpu")
	require.NoError(t, err)
	d := direct{t, s}
	require.NoError(t, d.increase(time.Second, 2))
	require.NoError(t, s.roster.Load().byID["cpu"].storeSnapshot(old, began))
	require.Equal(t, 2, d.target())
}

// A snapshot of another group, or an empty snapshot, is an error.
func TestForeignSnapshotIsRefused(t *testing.T) {
	terms, err := newTerms(spec("cpu", 0, 1))
	require.NoError(t, err)
	g := newGroup(terms)
	require.ErrorIs(t, g.storeSnapshot(fleet.Snapshot{}, time.Now()), fleet.ErrUnavailable)
	require.ErrorIs(t, g.storeSnapshot(fleet.Snapshot{Group: "gpu", Epoch: "a"}, time.Now()), fleet.ErrUnavailable)
	require.Nil(t, g.picture.Load())
}
