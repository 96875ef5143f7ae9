package workflows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Temporal's UI shows why a group cannot grow, and the phase and the reason of each instance.
func TestGroupIsDescribedInTemporalUI(t *testing.T) {
	noon := time.Date(2026, 11, 10, 12, 0, 0, 0, time.FixedZone("", 3600))
	s := fleet.Snapshot{Group: "a", Target: 2, Min: 1, Max: 5}
	require.Equal(t, "**a**: target 2, min 1, max 5\n", describeGroup(s))

	s.Paused, s.Condition = true, "no worker"
	s.Notice.Name, s.Notice.Message = "Retired", "it is no longer listed"
	s.Instances = []fleet.InstanceView{
		{Name: "a-t0-1", Phase: fleet.Ready, Provider: "milan", Attempt: 1, Since: noon},
		{Name: "a-t0-2", Phase: fleet.Draining, Provider: "turin", Attempt: 2, Since: noon, Stuck: "pod web does not end"},
		{Name: "a-t0-3", Phase: fleet.Failed, Since: noon, Stuck: "no longer",
			Failure: &fleet.Failure{Code: fleet.CodeNoCapacity, Message: "all are full"}},
	}
	require.Equal(t, `**a**: target 2, min 1, max 5

**paused**: no instances are started

**Retired**: it is no longer listed

**condition**: no worker

| instance | phase | provider | attempt | since | why |
|---|---|---|---|---|---|
| a-t0-1 | Ready | milan | 1 | 2026-11-10 11:00:00Z |  |
| a-t0-2 | Draining | turin | 2 | 2026-11-10 11:00:00Z | pod web does not end |
| a-t0-3 | Failed |  | 0 | 2026-11-10 11:00:00Z | NoCapacity: all are full |
`, describeGroup(s))

	s.Instances = make([]fleet.InstanceView, 1000)
	require.Equal(t, describedRows, strings.Count(describeGroup(s), " 00:00:00Z |"))
}

// Temporal's UI shows a provider's peering, why the peering cannot be used, and the holds on it.
func TestProviderIsDescribedInTemporalUI(t *testing.T) {
	noon := time.Date(2026, 11, 10, 12, 0, 0, 0, time.FixedZone("", 3600))
	p := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established, Since: noon}
	require.Equal(t, "peering with **milan**: Established since 2026-11-10 11:00:00Z, 0 holds\n", describeProvider(p))

	p.Cordoned, p.Refusing = noon, &fleet.ProviderRefusal{Kind: fleet.RefusingDrained, Reason: "maintenance"}
	p.Failure = &fleet.Failure{Code: fleet.CodeTimeout, Message: "no answer"}
	p.Holds, p.Waiting = []string{"lca-a-t0-1-1", "lca-a-t0-2-1"}, []string{"lca-a-t0-2-1"}
	p.Standby = map[string]fleet.HoldState{"standby-2": fleet.HoldWaiting, "standby-1": fleet.HoldGranted}
	require.Equal(t, fmt.Sprintf(`peering with **milan**: Established since 2026-11-10 11:00:00Z, 2 holds

**cordoned** by an operator: it gets no new nodes

it refuses this cluster (%s): maintenance

last failure: Timeout: no answer
- lca-a-t0-1-1: %[2]s
- lca-a-t0-2-1: %[3]s
- standby-1: %[2]s
- standby-2: %[3]s
`, fleet.RefusingDrained, fleet.HoldGranted, fleet.HoldWaiting), describeProvider(p))

	p.Holds = make([]string, 1000)
	require.Equal(t, describedRows, strings.Count(describeProvider(p), "- : "))
}
