package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

const (
	many   = 200              // instances on the dead provider
	few    = 10               // instances of one visit to the healthy provider
	beside = 45 * time.Second // duration of the visits to the healthy provider while the other provider is dead
	// A visit is the creation and removal of some nodes on the healthy provider. heldUpBy is the additional time, in
	// seconds, that a visit may take while the other provider is dead. It applies to a machine on which a visit
	// without a fault takes as long as the constant quick. On a busier machine everything takes longer, and the bound
	// grows.
	heldUpBy = 5.0
	quick    = 2.0
)

// deadProvider runs a provider that hangs forever and has 200 instances, next to a healthy provider. The dead provider
// has no effect on the healthy one: the nodes of the healthy provider are created and removed as fast as before.
func deadProvider(t *testing.T) {
	delays := sim.Delays{Peer: 300 * time.Millisecond, Join: 500 * time.Millisecond, Leave: 200 * time.Millisecond,
		Unpeer: 200 * time.Millisecond}
	two := wide(1, delays, []class{{id: "doomed"}, {id: "sound"}},
		lender("dead", "doomed", 1, many), lender("healthy", "sound", 1, many))
	t.Run("NodesToCome", func(t *testing.T) {
		o := newScenario(t, two)
		come, gone := o.alone()
		o.breaks("dead", sim.Knobs{Hang: backend.StageReady})
		o.grow("doomed", many)
		o.settled("doomed", many)
		o.beside(come, gone)
		o.heals("dead")
		o.finish()
	})
	t.Run("NodesToGo", func(t *testing.T) {
		o := newScenario(t, two)
		come, gone := o.alone()
		o.grow("doomed", many)
		o.ready("doomed", many)
		o.breaks("dead", sim.Knobs{Hang: backend.StageSliceGone})
		o.release("doomed", o.instances("doomed"))
		o.until("as many of doomed are stuck as run concurrently", func(w *sim.State) error {
			if c := w.Counts(); c.Nodes > many/2 || c.RemoteSlices < many {
				return fmt.Errorf("there are %+v", c)
			}
			return nil
		})
		o.beside(come, gone)
		o.heals("dead")
		o.finish()
	})
}

// visit creates some nodes on the healthy provider and removes them with all of their objects. It returns both
// durations.
func (o *scenario) visit() (come, gone time.Duration) {
	o.t.Helper()
	began := time.Now()
	o.grow("sound", few)
	o.ready("sound", few)
	come, began = time.Since(began), time.Now()
	o.release("sound", o.instances("sound"))
	o.until("all of sound are gone", func(w *sim.State) error {
		if w.Consumer.Peerings["healthy"] != nil {
			return fmt.Errorf("the peering is there")
		}
		return nil
	})
	gone = time.Since(began)
	o.t.Logf("%d nodes came in %.1fs and went in %.1fs", few, come.Seconds(), gone.Seconds())
	return come, gone
}

// The method `alone` returns the durations of some visits before any fault.
func (o *scenario) alone() (come, gone []time.Duration) {
	o.t.Helper()
	for range 5 {
		c, g := o.visit()
		come, gone = append(come, c), append(gone, g)
	}
	return come, gone
}

// beside makes visits for a while and requires that they are not delayed. It compares the medians, because
// other users of the machine delay single visits.
func (o *scenario) beside(come, gone []time.Duration) {
	o.t.Helper()
	var comes, goes []time.Duration
	for began := time.Now(); time.Since(began) < beside; {
		c, g := o.visit()
		comes, goes = append(comes, c), append(goes, g)
	}
	slow := max(1, median(come)/quick, median(gone)/quick)
	o.heldUp("come", median(come), median(comes), slow, slices.Max(comes))
	o.heldUp("go", median(gone), median(goes), slow, slices.Max(goes))
}

func (o *scenario) heldUp(what string, alone, is, slow float64, most time.Duration) {
	o.t.Helper()
	o.t.Logf("HELDUP %s %.1fs alone %.1fs; at most %.1fs", what, is, alone, most.Seconds())
	require.LessOrEqual(o.t, is, alone+slow*heldUpBy, "nodes of the healthy provider %s too late", what)
}

func median(of []time.Duration) float64 { return slices.Sorted(slices.Values(of))[len(of)/2].Seconds() }

// settled waits until the n instances that CA wants in the group are booked and have chosen a provider. The costs of
// the start of a burst therefore do not count as an effect of the dead provider.
func (o *scenario) settled(group string, n int) {
	o.t.Helper()
	instances := func() (booked, looking int, err error) {
		snap, err := flow.NewGroups(o.s.api, "", "").Snapshot(o.ctx, group)
		for _, i := range snap.Instances {
			if slices.Contains([]fleet.Phase{fleet.Pending, fleet.Discovering, fleet.Selecting}, i.Phase) {
				looking++
			}
		}
		return len(snap.Instances), looking, err
	}
	o.until(fmt.Sprintf("%d of %s are booked", n, group), func(*sim.State) error {
		booked, _, err := instances()
		if err == nil && booked < n {
			err = fmt.Errorf("%d are", booked)
		}
		return err
	})
	o.content(group) // CA backs off when the instances fail
	o.until("none looks for a provider", func(*sim.State) error {
		_, looking, err := instances()
		if err == nil && looking > 0 {
			err = fmt.Errorf("%d do", looking)
		}
		return err
	})
}
