package worker

// DeadlockAfter is when a workflow task counts as deadlocked.
var DeadlockAfter = deadlockAfter
