package worker

// DeadlockAfter returns the time after which a workflow task counts as deadlocked.
var DeadlockAfter = deadlockAfter
