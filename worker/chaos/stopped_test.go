package chaos

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
)

// burst is the number of nodes that CA requests at the same time. The constant some is the number of Ready nodes at
// the time of the fault.
const (
	burst = 150
	some  = 30
)

// work holds the durations of the backend's operations in a burst.
var work = sim.Delays{Peer: 300 * time.Millisecond, Join: 3 * time.Second, Leave: 200 * time.Millisecond,
	Unpeer: 200 * time.Millisecond}

// workerStopped gives a worker no CPU for a minute in the middle of a burst. When it is the only worker, all work waits
// for it and then continues. Otherwise another worker does the work during this minute.
func workerStopped(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("of%d", workers), func(t *testing.T) {
			t.Parallel() // the scenarios wait most of the time
			o := newScenario(t, standard(workers))
			o.grow("std", burst)
			o.ready("std", some)
			o.occupy(o.instances("std")[:10], false)
			over := time.Now().Add(time.Minute)
			o.stops(o.s.workers[0])
			if workers > 1 {
				o.ready("std", burst)
				t.Logf("all are Ready %.0fs before the worker goes on", time.Until(over).Seconds())
				require.True(t, time.Now().Before(over), "the other worker has done the work")
			}
			o.pause(time.Until(over))
			o.s.workers[0].signal(syscall.SIGCONT)
			o.m.note("test", "worker0 goes on")
			o.ready("std", burst)
			t.Logf("all are Ready %.0fs after the worker went on", time.Since(over).Seconds())
			o.finish()
		})
	}
}

// stops sends SIGSTOP to a process while this process does not hold the lock of the simulated world. A real cluster
// has no such lock.
func (o *scenario) stops(p *process) {
	o.t.Helper()
	require.NoError(o.t, o.s.world.Edit(o.ctx, func(*sim.State) error {
		p.signal(syscall.SIGSTOP)
		return nil
	}))
	o.m.note("test", "%s is stopped", p.name)
}
