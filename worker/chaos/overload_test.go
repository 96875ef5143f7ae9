package chaos

import (
	"flag"
	"testing"
)

var overloaded = flag.Bool("overload", false, "run TestOverload, some eight minutes")

// The work exceeds the available time, and processes receive no CPU. The product still undoes no healthy instance, and
// at the end the groups have the sizes that CA wants.
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
