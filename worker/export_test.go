package worker

import "time"

// EnsureEvery sets how often a worker makes the schedule of the comparison if it is not there.
func (o *Options) EnsureEvery(d time.Duration) { o.ensureEvery = d }

// DeadlockAfter is when a workflow task counts as deadlocked.
var DeadlockAfter = deadlockAfter
