package liqo_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func requireStuck(t *testing.T, err error, stage backend.Stage) {
	t.Helper()
	var stuck *backend.StageError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, stage, stuck.Stage, "%v", err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	t.Logf("stuck as expected: %v", err)
}

// The provider's Liqo stops in the middle of a handshake, and again in the middle of a removal. Each call of the
// backend names the stage at which it waits, and continues when Liqo runs again.
func TestLabStalledTenant(t *testing.T) {
	l := theLab(t)
	b, p := l.backend(t), l.provider(1)
	const manager = "provider1-liqo-cm"
	t.Cleanup(func() { _ = l.signal(manager, syscall.SIGCONT) })
	stopped := false
	err := b.Establish(within(t, 5*time.Second), p, func(stage backend.Stage, _ string) {
		if stage == backend.StageSignedNonce && !stopped {
			stopped = true
			require.NoError(t, l.signal(manager, syscall.SIGSTOP))
		}
	})
	requireStuck(t, err, backend.StageTenant)
	require.NoError(t, l.signal(manager, syscall.SIGCONT))
	require.NoError(t, b.Establish(t.Context(), p, nil))

	require.NoError(t, l.signal(manager, syscall.SIGSTOP))
	requireStuck(t, b.RemovePeering(within(t, 4*time.Second), p, nil), backend.StageTenantGone)
	requireStuck(t, b.Establish(within(t, 4*time.Second), p, nil), backend.StageTenant)
	require.NoError(t, l.signal(manager, syscall.SIGCONT))
	require.NoError(t, b.RemovePeering(t.Context(), p, nil))
	l.requireNothing(t)
}

// The test ends Establish after an arbitrary time. Another process then either removes the objects, or completes the
// peering and removes it.
func TestLabEstablishCut(t *testing.T) {
	l := theLab(t)
	for i := range 10 {
		after := time.Duration(i) * 50 * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			t.Log(l.backend(t).Establish(within(t, after), l.provider(2), nil))
			if i%3 == 2 {
				require.NoError(t, l.backend(t).Establish(t.Context(), l.provider(2), nil))
			}
			require.NoError(t, l.backend(t).RemovePeering(t.Context(), l.provider(2), nil))
			l.requireNothing(t)
		})
	}
}

// The test ends Join after an arbitrary time. Another process then removes the objects of the Join.
func TestLabJoinCut(t *testing.T) {
	l := theLab(t)
	p := l.provider(1)
	require.NoError(t, l.backend(t).Establish(t.Context(), p, nil))
	for i := range 8 {
		after := time.Duration(i) * 150 * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			a := attempt(100+i, p)
			_, err := l.backend(t).Join(within(t, after), nodeSpec(a), nil)
			t.Log(err)
			began := time.Now()
			require.NoError(t, l.backend(t).Return(within(t, time.Minute), a, nil))
			t.Logf("left within %.2f s", time.Since(began).Seconds())
			found, err := l.backend(t).List(t.Context(), backend.Scope{})
			require.NoError(t, err)
			require.Empty(t, found)
		})
	}
	require.NoError(t, l.backend(t).RemovePeering(t.Context(), p, nil))
	l.requireNothing(t)
}
