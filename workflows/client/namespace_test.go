package client

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The client reports a deleted namespace as deleted. It does not report that Temporal is unreachable.
func TestDeletedNamespaceIsReported(t *testing.T) {
	missing := serviceerror.NewNamespaceNotFound("autoscaling")
	_, err := NewGroups(described{err: missing}, "", "q").Snapshot(t.Context(), "a")
	require.ErrorIs(t, err, fleet.ErrTemporal)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	require.ErrorContains(t, err, "Temporal answers, and has no namespace autoscaling: it was deleted")
	require.NotContains(t, err.Error(), "does not answer")

	b := newBase(nil, "", "q")
	err = b.fromTemporal("nodegroup/a", missing)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	require.NotErrorIs(t, err, fleet.ErrOutcomeUnknown, "nothing has run")
	require.ErrorContains(t, err, "no namespace autoscaling")
}
