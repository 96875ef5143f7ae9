package chaos

import (
	"flag"
	"testing"
)

var overloaded = flag.Bool("overload", false, "run TestOverload, some eight minutes")

// The work exceeds the available time, and processes receive no CPU: no healthy instance is given up for that, and at
// the end all of CA's wishes are fulfilled.
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
