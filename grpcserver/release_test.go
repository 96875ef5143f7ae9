package grpcserver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// idle returns a group with ten Ready instances whose bookings take 600 ms. remove deletes one instance within a
// timeout.
func idle(t *testing.T) (f *fakeGroups, s *Server, remove func(n int, within time.Duration) error) {
	t.Helper()
	f = newFake()
	s = loaded(t, f, spec("cpu", 0, 20))
	d := direct{t, s}
	require.NoError(t, d.increase(5*time.Second, 10))
	f.ready("cpu", 10)
	require.NoError(t, d.refresh())
	names := []string{}
	for _, i := range f.published("cpu").Instances {
		names = append(names, fleet.InstanceID("cpu", i.Name))
	}
	f.set(func(f *fakeGroups) { f.delay = 600 * time.Millisecond })
	return f, s, func(n int, within time.Duration) error {
		_, err := s.NodeGroupDeleteNodes(d.within(within), &protos.NodeGroupDeleteNodesRequest{Id: "cpu",
			Nodes: []*protos.ExternalGrpcNode{{Name: names[n], ProviderID: names[n]}}})
		return err
	}
}

// Cluster Autoscaler deletes ten idle nodes of a group with ten concurrent calls. Each call has a timeout of five
// seconds. The first call is booked alone. The calls that wait for it are booked together.
func TestConcurrentDeletionsShareABooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, remove := idle(t)
		began := time.Now()
		var calls sync.WaitGroup
		var mu sync.Mutex
		var failed []error
		for n := range 10 {
			calls.Go(func() {
				err := remove(n, 5*time.Second)
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			})
		}
		calls.Wait()
		require.NoError(t, errors.Join(failed...))
		require.Zero(t, f.target("cpu"))
		require.LessOrEqual(t, f.called(string(fleet.Release)), 2)
		require.LessOrEqual(t, time.Since(began), 2*600*time.Millisecond)
	})
}

// A caller gives up while its call waits. This call is not booked, and the other waiting calls are booked.
func TestAbandonedDeletionIsNotBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, remove := idle(t)
		var calls sync.WaitGroup
		calls.Go(func() { require.NoError(t, remove(0, 5*time.Second)) })
		synctest.Wait() // the call is being booked
		calls.Go(func() { requireCode(t, codes.DeadlineExceeded, remove(1, 100*time.Millisecond)) })
		calls.Go(func() { require.NoError(t, remove(2, 5*time.Second)) })
		calls.Wait()
		require.Equal(t, 8, f.target("cpu"))
	})
}

// A call with a short deadline is booked separately, so that it does not shorten the time of other calls.
func TestShortDeadlineIsBookedSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, remove := idle(t)
		var calls sync.WaitGroup
		calls.Go(func() { require.NoError(t, remove(0, 5*time.Second)) })
		synctest.Wait()
		calls.Go(func() { require.NoError(t, remove(1, 2500*time.Millisecond)) })
		synctest.Wait()
		calls.Go(func() { require.NoError(t, remove(2, 5*time.Second)) })
		calls.Wait()
		require.Equal(t, 7, f.target("cpu"))
		require.Equal(t, 3, f.called(string(fleet.Release)))
	})
}

// The function `together` makes calls one after another. The first call is booked alone. All later calls share one
// booking.
func together(calls *sync.WaitGroup, each ...func()) {
	for _, call := range each {
		calls.Go(call)
		synctest.Wait()
	}
}

// Calls that share a booking have separate outcomes. When the group refuses one call, it still books the other calls.
func TestEachDeletionHasItsOwnOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s, remove := idle(t)
		f.change("cpu", func(l *fleet.Ledger) { l.Entries[2].Kept = true })
		var calls sync.WaitGroup
		together(&calls, func() { require.NoError(t, remove(0, 5*time.Second)) },
			func() { require.NoError(t, remove(1, 5*time.Second)) },
			func() {
				err := remove(2, 5*time.Second)
				requireCode(t, codes.FailedPrecondition, err)
				require.ErrorContains(t, err, "delete nodes of node group cpu: instance ")
				require.ErrorContains(t, err, "keeps the volumes")
			},
			func() {
				id := fleet.InstanceID("cpu", "foreign")
				_, err := s.NodeGroupDeleteNodes(direct{t, s}.within(5*time.Second), &protos.NodeGroupDeleteNodesRequest{
					Id: "cpu", Nodes: []*protos.ExternalGrpcNode{{Name: id, ProviderID: id}}})
				requireCode(t, codes.InvalidArgument, err)
			},
			func() { require.NoError(t, remove(3, 5*time.Second)) })
		calls.Wait()
		require.Equal(t, 7, f.target("cpu"))
		require.Equal(t, 2, f.called(string(fleet.Release)))
	})
}

// A caller cancels its call during the booking. The calls of other callers are not affected.
func TestCancelledDeletionAffectsNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s, remove := idle(t)
		gone, hangUp := context.WithTimeout(t.Context(), 5*time.Second)
		var calls sync.WaitGroup
		together(&calls, func() { require.NoError(t, remove(0, 5*time.Second)) },
			func() {
				id := fleet.InstanceID("cpu", f.published("cpu").Instances[1].Name)
				_, err := s.NodeGroupDeleteNodes(gone, &protos.NodeGroupDeleteNodesRequest{Id: "cpu",
					Nodes: []*protos.ExternalGrpcNode{{Name: id, ProviderID: id}}})
				requireCode(t, codes.Canceled, err)
			},
			func() { require.NoError(t, remove(2, 5*time.Second)) })
		pass(700 * time.Millisecond) // the first call is booked, and the other calls are being booked
		hangUp()
		calls.Wait()
		require.Equal(t, 7, f.target("cpu"), "the group had the call already")
		require.Equal(t, 2, f.called(string(fleet.Release)))
	})
}

// The answer of a booking is lost. The server searches the snapshot for the calls of the booking: each call that has
// run succeeds, although the group has refused another call.
func TestDeletionsWithALostAnswerAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, remove := idle(t)
		f.change("cpu", func(l *fleet.Ledger) { l.Entries[2].Kept = true })
		f.set(func(f *fakeGroups) {
			f.onBooked = func(fleet.Request) { f.lose = lose{active: true, booked: true} }
		})
		var calls sync.WaitGroup
		together(&calls, func() { require.NoError(t, remove(0, 5*time.Second)) },
			func() { require.NoError(t, remove(1, 5*time.Second)) },
			func() { requireCode(t, codes.Unavailable, remove(2, 5*time.Second)) },
			func() { require.NoError(t, remove(3, 5*time.Second)) })
		calls.Wait()
		require.Equal(t, 7, f.target("cpu"))
	})
}

// When the outcome of a booking is unknown, each of its calls gets an error that reports this. The group is dirty
// until a read shows the outcome.
func TestDeletionsWithAnUnknownOutcomeMakeTheGroupDirty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s, remove := idle(t)
		var calls sync.WaitGroup
		calls.Go(func() { require.NoError(t, remove(0, 5*time.Second)) })
		synctest.Wait()
		f.set(func(f *fakeGroups) { f.onBooked = func(fleet.Request) { f.lose = lose{active: true} } })
		for n := range 3 {
			calls.Go(func() {
				err := remove(n+1, 5*time.Second)
				unknown := []codes.Code{codes.Unknown, codes.Unavailable, codes.DeadlineExceeded}
				require.Contains(t, unknown, status.Code(err), "%v", err)
			})
		}
		calls.Wait()
		require.True(t, s.roster.Load().byID["cpu"].isDirty())
	})
}
