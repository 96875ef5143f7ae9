package chaos

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// oneCPU runs all processes on two CPUs, and restricts them to one CPU in the middle of a burst.
func oneCPU(t *testing.T) {
	var all, two, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	for cpu := 0; two.Count() < min(2, all.Count()); cpu++ {
		if all.IsSet(cpu) {
			two.Set(cpu)
			one.Zero()
			one.Set(cpu)
		}
	}
	o := newScenario(t, standard(2))
	o.onlyOn(&two)
	o.grow("std", burst)
	o.ready("std", some)
	o.occupy(o.instances("std")[:10], false)
	o.onlyOn(&one)
	o.m.note("test", "everything runs on one CPU")
	o.ready("std", burst)
	o.finish()
}

// onlyOn restricts all processes to these CPUs, including their present and future threads.
func (o *scenario) onlyOn(cpus *unix.CPUSet) {
	o.t.Helper()
	for _, p := range o.s.all() {
		// A thread that is not restricted yet may start another thread during the first pass. The second pass restricts this
		// thread too.
		for range 2 {
			tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "task"))
			require.NoError(o.t, err)
			for _, task := range tasks {
				thread, err := strconv.Atoi(task.Name())
				require.NoError(o.t, err)
				if err := unix.SchedSetaffinity(thread, cpus); err != nil {
					require.ErrorIs(o.t, err, unix.ESRCH, "thread %d of %s", thread, p.name)
				}
			}
		}
	}
}
