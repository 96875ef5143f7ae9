package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// temporalRestarted kills Temporal in the middle of a burst and starts it again some seconds later.
func temporalRestarted(t *testing.T) {
	o := newScenario(t, standard(1))
	o.grow("std", burst)
	o.ready("std", some)
	o.occupy(o.instances("std")[:10], false)
	o.s.temporal.kill()
	o.m.note("test", "Temporal is dead")
	o.pause(5 * time.Second)
	o.revives()
	o.ready("std", burst)
	o.finish()
}

// revives starts Temporal and returns when it answers.
func (o *scenario) revives() {
	o.t.Helper()
	require.NoError(o.t, o.s.temporal.start())
	require.NoError(o.t, until(o.ctx, stepLimit, func() error { return o.s.answers(o.ctx) }), "Temporal is back")
	o.m.temporalUp()
	o.m.note("test", "Temporal is back")
}
