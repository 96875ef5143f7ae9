package grpcserver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// CA logs one line about each group in each loop. This line contains the facts that CA's own figures lack.
func TestDebugShowsTheGroupsState(t *testing.T) {
	running, creating := fleet.InstanceView{State: fleet.StateRunning}, fleet.InstanceView{State: fleet.StateCreating}
	instances := []fleet.InstanceView{running, running, running, creating, creating, {State: fleet.StateDeleting}}
	broken := &problem{errors.New("broken")}
	const usual = "target 5 (3 running, 2 creating), 1 deleting, as of t0/7"
	for want, change := range map[string]func(g *group, p *picture){
		usual:                            func(*group, *picture) {},
		usual + ", paused":               func(_ *group, p *picture) { p.Paused = true },
		usual + ", no longer configured": func(g *group, _ *picture) { g.terms.Store(&terms{retired: true}) },
		usual + ", outcome of the last operation unknown": func(g *group, _ *picture) { g.markUnknown(time.Now()) },
		usual + ", unavailable: broken":                   func(g *group, _ *picture) { g.unusable.Store(broken) },
	} {
		g := newGroup(&terms{spec: spec("cpu", 0, 10)})
		p := newPicture(fleet.Snapshot{Group: "cpu", Epoch: "t0", Revision: 7, Target: 5, Instances: instances})
		change(g, p)
		require.Equal(t, want, g.debug(p))
	}
}

// CA treats an error without a gRPC code as success, so every error has a code.
func TestEveryErrorHasACode(t *testing.T) {
	for _, f := range []*fleet.Failure{nil, {}, {Message: "words"}} {
		info := toErrorInfo(f)
		require.Equal(t, string(fleet.CodeInternal), info.GetErrorCode())
		require.Equal(t, "failed without a recorded reason", info.GetErrorMessage())
		require.EqualValues(t, 99, info.GetInstanceErrorClass())
	}
	full := toErrorInfo(&fleet.Failure{Code: fleet.CodeNoCapacity, Message: "full"})
	require.Equal(t, "NoCapacity full", full.GetErrorCode()+" "+full.GetErrorMessage())
	require.EqualValues(t, 1, full.GetInstanceErrorClass())
}
