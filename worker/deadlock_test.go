package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// A machine without free CPU does not count as a deadlock. The worker finds a real deadlock before the server gives the
// task to another worker.
func TestDeadlocksAreFoundInTime(t *testing.T) {
	t.Setenv("TEMPORAL_DEBUG", "")
	require.Greater(t, worker.DeadlockAfter(), time.Second)
	require.Less(t, worker.DeadlockAfter(), workflows.WorkflowTaskTimeout)
	t.Setenv("TEMPORAL_DEBUG", "1")
	require.Zero(t, worker.DeadlockAfter())
}
