package chaos

import (
	"flag"
	"testing"
)

var overloaded = flag.Bool("overload", false, "run TestOverload, some eight minutes")

// More work than there is time for, and processes that get none: nothing healthy is given up for it, and in the end
// everything is as CA wanted it.
func TestOverload(t *testing.T) {
	if !*overloaded {
		t.Skip("run make chaos")
	}
	t.Run("WorkerStopped", workerStopped)
	t.Run("OneCPU", oneCPU)
	t.Run("TemporalRestarted", temporalRestarted)
	t.Run("DeadProvider", deadProvider)
	t.Run("BackupRestored", backupRestored)
}
