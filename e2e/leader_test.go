package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// leaderFrozen stops the process of the worker that holds the hub's Lease. The other worker takes over the Lease and
// runs rounds, and CA requests another node. When the stopped process continues, it remembers an older state of the
// hub. Both Nodes stay, and the other worker keeps the Lease.
func leaderFrozen(ctx context.Context, t *testing.T, s *stack) {
	first := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "before", 2, "800m"))
	ids := first.scaledOut(ctx, 1)
	first.lookBack(ids)

	lead, err := s.stopLeader(ctx)
	require.NoError(t, err)
	stopped, err := s.lease(ctx)
	require.NoError(t, err)
	r := newRun(t, s)
	otherLeads := func(ctx context.Context) error {
		now, err := s.lease(ctx)
		if err == nil && (*now.HolderIdentity == "" || *now.HolderIdentity == *stopped.HolderIdentity) {
			err = fmt.Errorf("the holder was %q and is %q", *stopped.HolderIdentity, *now.HolderIdentity)
		}
		return err
	}
	r.until(ctx, "the other worker leads", time.Minute, otherLeads)
	// Until these polls end, Temporal gives tasks to the stopped process, and CA's calls may exceed their time.
	r.during(ctx, "the polls of the stopped worker end", longPoll, otherLeads)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids = append(ids, r.scaledOut(ctx, 1)...)
	nodes, err := s.uids(ctx, ids)
	require.NoError(t, err)

	require.NoError(t, lead.Signal(syscall.SIGCONT))
	r.during(ctx, "both nodes stay", 45*time.Second, func(ctx context.Context) error {
		now, err := s.uids(ctx, ids)
		if err == nil && now != nodes {
			err = fmt.Errorf("the nodes were %v and are %v", nodes, now)
		}
		return errors.Join(err, otherLeads(ctx))
	})
	select {
	case <-lead.Done():
		require.Fail(t, "the process that was stopped has ended")
	default:
	}
	require.NoError(t, undeploy(ctx, s.consumer, "before"))
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// longPoll is longer than Temporal keeps the poll of a worker that does not answer.
const longPoll = 70 * time.Second

// lease reads the Lease of the hub's leader. Its holder and its time are not nil.
func (s *stack) lease(ctx context.Context) (coordinationv1.LeaseSpec, error) {
	lease, err := s.consumer.kube.CoordinationV1().Leases(observer.Namespace).Get(ctx, observer.Name(hub),
		metav1.GetOptions{})
	if err != nil {
		return coordinationv1.LeaseSpec{}, err
	}
	if lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
		return lease.Spec, errors.New("the Lease has no holder")
	}
	return lease.Spec, nil
}

// stopLeader stops the worker process that holds the Lease. This is the process whose stop ends the renewals. The end
// of the test continues it.
func (s *stack) stopLeader(ctx context.Context) (*proc.Process, error) {
	for _, p := range []*proc.Process{s.worker, s.secondWorker} {
		s.t.Cleanup(func() { _ = p.Signal(syscall.SIGCONT) })
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return nil, err
		}
		renewed, err := s.isRenewed(ctx)
		if err != nil || !renewed {
			return p, err
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the Lease is renewed while either worker is stopped")
}

// isRenewed reports whether the Lease is renewed twice within eight seconds. Its holder renews it every two seconds. The
// API server may still execute one request of a stopped process.
func (s *stack) isRenewed(ctx context.Context) (bool, error) {
	first, err := s.lease(ctx)
	if err != nil {
		return false, err
	}
	renewals, last := 0, first.RenewTime
	var unread error
	err = testkit.Poll(ctx, 8*time.Second, pollEvery, func(context.Context) error {
		now, err := s.lease(ctx)
		if unread = err; err == nil && !now.RenewTime.Equal(last) {
			renewals, last = renewals+1, now.RenewTime
		}
		if renewals < 2 {
			err = errors.Join(err, fmt.Errorf("%d renewals", renewals))
		}
		return err
	})
	return err == nil, unread
}

// uids returns the UIDs of the Ready Nodes with these two ids.
func (s *stack) uids(ctx context.Context, ids []string) (uids [2]types.UID, err error) {
	for n, id := range ids {
		node, err := s.consumer.node(ctx, id)
		if err != nil {
			return uids, err
		}
		uids[n] = node.UID
	}
	return uids, nil
}
