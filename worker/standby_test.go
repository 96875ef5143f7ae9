package worker_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// peered is the state of a world with one peering and no node.
var peered = sim.Counts{Peerings: 1, Tenants: 1}

func oneStandby(g *fleet.GroupSpec) { g.Standby = 1 }

// standby waits until the group keeps a peering ready with its n-th provider and with no other provider.
func (s *scene) standby(n int) {
	s.t.Helper()
	s.until("it keeps the peering with "+s.providers[n]+" ready", func(snap fleet.Snapshot) bool {
		return len(snap.Standby) == 1 && snap.Standby[0].State == fleet.HoldGranted &&
			snap.Standby[0].Provider == s.providers[n]
	})
}

// peering returns the UID of the n-th provider's peering.
func (s *scene) peering(n int) string {
	s.t.Helper()
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	require.Contains(s.t, w.Consumer.Peerings, s.providers[n])
	return w.Consumer.Peerings[s.providers[n]].UID
}

// A group keeps a peering ready without a node. A node on this peering needs only a slice, and the peering stays when
// the node is removed. The peering has no linger time, so without the standby it would be removed immediately. The
// peering is removed when the config no longer requests a standby.
func TestStandbyKeepsAPeeringReady(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2, oneStandby).work()
	s.standby(0)
	s.counts("a peering, and no node", func(c sim.Counts) bool { return c == peered })
	made := s.peering(0)
	var run int
	s.provider(0, "is established", func(p fleet.ProviderSnapshot) bool {
		run = p.Run
		return p.Phase == fleet.Established && len(p.Holds) == 0 && len(p.Standby) == 1
	})

	s.grow(1)
	i := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(t, s.providers[0], i.Provider)
	s.counts("one peering and one slice", func(c sim.Counts) bool {
		return c.Peerings == 1 && c.Tenants == 1 && c.Slices == 1 && c.Nodes == 1
	})
	s.release(i.Name)
	s.allIn("", 0)
	s.counts("the peering is left", func(c sim.Counts) bool { return c == peered })
	s.provider(0, "has not been peered again", func(p fleet.ProviderSnapshot) bool {
		return len(p.Holds) == 0 && p.Phase == fleet.Established && p.Run == run
	})
	require.Equal(t, made, s.peering(0))

	s.spec.Standby = 0
	s.configure()
	s.empty()
	require.Empty(t, s.snapshot().Standby)
}

// When the peering of a standby fails, the group keeps a standby on the next provider.
func TestStandbyMovesToTheNextProvider(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2, oneStandby)
	s.knobs(0, sim.Knobs{Refuse: backend.StageTenant, Message: "the tenant is cordoned"})
	s.work()
	s.standby(1)
	s.counts("the other peering alone", func(c sim.Counts) bool { c.Refusals = 0; return c == peered })
}

// An administrator removes a group from the config. Two rounds of the observer find the group's standby hold, which
// no group lists any more, and the provider releases it.
func TestStandbyOfARemovedGroupIsReleased(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1, oneStandby).work()
	s.standby(0)
	require.NoError(t, s.groups.Close(s.ctx, s.spec.ID))
	require.Eventually(t, func() bool {
		running, err := s.groups.Running(s.ctx)
		return err == nil && len(running) == 0
	}, waitLimit, waitTick, "the group is closed")
	s.observe()
	s.observe()
	s.empty()
}

// reprice changes a price in the offers' file.
func (s *scene) reprice(from, to string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "offers.yaml")
	text, err := os.ReadFile(path)
	require.NoError(s.t, err)
	require.Contains(s.t, string(text), from)
	require.NoError(s.t, os.WriteFile(path, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o600))
}

// Temporal's whole database is lost while a peering is kept ready. Another provider is now the cheapest, but the price
// difference is too small, so the group keeps the existing peering.
func TestLostDatabaseKeepsTheStandby(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2, oneStandby)
	s.reprice("price: 2,", "price: 0.9,")
	address := testkit.FreePorts(t, 1)[0]
	stop := s.temporalOf(address, filepath.Join(s.dir, "before"))
	var err error
	s.temporal, err = client.NewLazyClient(client.Options{HostPort: address, Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(s.temporal.Close)
	s.groups = flow.NewGroups(s.temporal, s.hub, s.queue)
	kill := s.spawnAt(address)
	s.configure()
	s.standby(1)
	before := s.snapshot().Standby
	require.Len(t, before, 1)
	made := s.peering(1)

	kill()
	stop()
	s.reprice("price: 0.9,", "price: 1.1,")
	s.temporalOf(address, filepath.Join(s.dir, "after"))
	s.spawnAt(address)
	for _, h := range s.configure().Standby { // the group may have booked the next standby by now
		require.NotEqual(t, before[0].Key, h.Key, "it is forgotten")
	}
	s.standby(1)
	s.provider(1, "holds it", func(p fleet.ProviderSnapshot) bool {
		return p.Phase == fleet.Established && len(p.Standby) == 1
	})
	s.counts("it stands alone", func(c sim.Counts) bool { return c == peered })
	require.Equal(t, made, s.peering(1), "the peering was made again")
}
