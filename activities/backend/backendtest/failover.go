package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// An instance's second attempt, on another provider, stamps only after the first attempt's Node is gone: two Nodes never
// carry one instance id.
func (s *suite) testSecondAttempt(t *testing.T) {
	one, two := s.attempt(instSecond, 1, s.first()), s.attempt(instSecond, 2, s.second())
	s.joined(t, one)
	s.established(t, two.Provider)

	ctx := s.ctx(t)
	atStamp := make(chan struct{}, 1)
	joined := make(chan error, 1)
	rec := &recorder{}
	rec.each = func(stage backend.Stage) {
		if stage == backend.StageStamp && rec.count(stage) == 2 { // reported again: it waits
			atStamp <- struct{}{}
		}
	}
	go func() {
		_, err := s.Other.Join(ctx, s.spec(two), rec.progress)
		joined <- err
	}()
	select {
	case <-atStamp:
	case err := <-joined:
		require.FailNow(t, "joined while the first attempt's Node exists", "error: %v", err)
	case <-ctx.Done():
		require.FailNow(t, "the second attempt never came to its stamp")
	}
	require.Equal(t, one.InstanceID(), s.node(t, one).Spec.ProviderID)
	require.True(t, isReady(s.node(t, two)))
	require.Empty(t, s.node(t, two).Spec.ProviderID, "two Nodes carry one instance id")

	s.left(t, one)
	select {
	case err := <-joined:
		require.NoError(t, err)
	case <-ctx.Done():
		require.FailNow(t, "the second attempt did not go on")
	}
	require.Equal(t, two.InstanceID(), s.node(t, two).Spec.ProviderID)
	require.True(t, s.found(t, two).Marked)

	s.left(t, two)
	s.unpeered(t, two.Provider)
	require.Empty(t, s.objects(t, two.Provider))
}
