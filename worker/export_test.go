package worker

// Lanes are the workers of all lanes, not yet started, for tests that say themselves whether attributes are registered.
var Lanes = lanes

// DeadlockAfter is when a workflow task counts as deadlocked.
var DeadlockAfter = deadlockAfter
