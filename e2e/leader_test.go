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

	lead := s.stopLeader(ctx)
	t.Cleanup(func() { _ = lead.Signal(syscall.SIGCONT) })
	stopped := s.lease(ctx)
	r := newRun(t, s)
	r.unanswered = true // a stopped worker may have received a task that CA's call waits for
	r.until(ctx, "the other worker leads", time.Minute, func(ctx context.Context) error {
		return differs(stopped, s.lease(ctx))
	})
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids = append(ids, r.scaledOut(ctx, 1)...)
	nodes, second := s.uids(ctx, ids), s.lease(ctx)

	require.NoError(t, lead.Signal(syscall.SIGCONT))
	r.during(ctx, "both nodes stay", 45*time.Second, func(ctx context.Context) error {
		if now := s.uids(ctx, ids); now != nodes {
			return fmt.Errorf("the nodes were %v and are %v", nodes, now)
		}
		if differs(second, s.lease(ctx)) == nil {
			return errors.New("the Lease has another holder")
		}
		return nil
	})
	require.NoError(t, undeploy(ctx, s.consumer, "before"))
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// lease reads the Lease of the hub's leader.
func (s *stack) lease(ctx context.Context) coordinationv1.LeaseSpec {
	s.t.Helper()
	lease, err := s.consumer.kube.CoordinationV1().Leases(observer.Namespace).Get(ctx, observer.Name(hub),
		metav1.GetOptions{})
	require.NoError(s.t, err)
	require.NotNil(s.t, lease.Spec.HolderIdentity)
	require.NotNil(s.t, lease.Spec.RenewTime)
	return lease.Spec
}

// differs returns nil if both Leases have a holder, and not the same one.
func differs(a, b coordinationv1.LeaseSpec) error {
	if *b.HolderIdentity == "" || *a.HolderIdentity == *b.HolderIdentity {
		return fmt.Errorf("the holder was %q and is %q", *a.HolderIdentity, *b.HolderIdentity)
	}
	return nil
}

// stopLeader stops the worker process that holds the Lease. This is the process whose stop ends the renewals.
func (s *stack) stopLeader(ctx context.Context) *proc.Process {
	s.t.Helper()
	for _, p := range []*proc.Process{s.worker, s.secondWorker} {
		require.NoError(s.t, p.Signal(syscall.SIGSTOP))
		if !s.isRenewed(ctx) {
			return p
		}
		require.NoError(s.t, p.Signal(syscall.SIGCONT))
	}
	require.FailNow(s.t, "the Lease is renewed while either worker is stopped")
	return nil
}

// isRenewed reports whether the Lease is renewed twice within eight seconds. Its holder renews it every two seconds. The
// API server may still execute one request of a stopped process.
func (s *stack) isRenewed(ctx context.Context) bool {
	s.t.Helper()
	renewals, last := 0, s.lease(ctx).RenewTime
	err := testkit.Poll(ctx, 8*time.Second, pollEvery, func(ctx context.Context) error {
		if now := s.lease(context.WithoutCancel(ctx)).RenewTime; !now.Equal(last) {
			renewals, last = renewals+1, now
		}
		if renewals < 2 {
			return fmt.Errorf("%d renewals", renewals)
		}
		return nil
	})
	return err == nil
}

// uids returns the UIDs of the Ready Nodes with these two ids.
func (s *stack) uids(ctx context.Context, ids []string) (uids [2]types.UID) {
	s.t.Helper()
	require.Len(s.t, ids, len(uids))
	for n, id := range ids {
		node, err := s.consumer.node(ctx, id)
		require.NoError(s.t, err)
		uids[n] = node.UID
	}
	return uids
}
