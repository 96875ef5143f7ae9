package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// stamps checks invariant I2 in the world: each Node carries the id of its own instance, and no two Nodes carry the
// same id.
func (s *stack) stamps() error {
	w, err := s.world.Snapshot()
	if err != nil {
		return err
	}
	carries := map[string]string{}
	for name, node := range w.Consumer.Nodes {
		id := node.Spec.ProviderID
		if id == "" {
			continue
		}
		if want := fleet.InstanceID(node.Labels[backend.LabelGroup], node.Annotations[backend.LabelInstance]); id != want {
			return fmt.Errorf("I2: Node %s carries %s instead of %s", name, id, want)
		}
		if other := carries[id]; other != "" {
			return fmt.Errorf("I2: Nodes %s and %s both carry %s", name, other, id)
		}
		carries[id] = name
	}
	return nil
}

// healthy checks the invariants that hold during faults, too: the stamps are correct, and processes end only when the
// test ends them.
func (s *stack) healthy(m *model) {
	if err := s.stamps(); err != nil {
		m.violate("%v", err)
	}
	for _, p := range s.all() {
		if p.died() {
			m.violate("%s has ended by itself, see %s", p.name, p.log)
		}
	}
}

// whole checks that CA's view equals the objects that exist (invariant I9). Every instance runs and has exactly one
// object of each kind.
func (s *stack) whole(seen map[string]listing) error {
	want := map[string]bool{}
	for id, v := range seen {
		for _, i := range v.list {
			if !i.counts || !i.running {
				return fmt.Errorf("I9: %s of group %s is not at rest: %+v", i.name, id, i)
			}
			want[fleet.InstanceID(id, i.name)] = true
		}
	}
	w, err := s.world.Snapshot()
	if err != nil {
		return err
	}
	c, n := w.Counts(), len(want)
	if c.Slices != n || c.RemoteSlices != n || c.VirtualNodes != n || c.Nodes != n || c.Ready != n || c.Stamped != n {
		return fmt.Errorf("I9: %d instances run, and there are %+v", n, c)
	}
	for name, node := range w.Consumer.Nodes {
		if !want[node.Spec.ProviderID] {
			return fmt.Errorf("I9: Node %s carries %q, which is no instance that runs", name, node.Spec.ProviderID)
		}
	}
	return nil
}

// rest repeats CA's loop with the same wanted sizes until nothing changes any more. It fails after the limit. A group
// detects a terminated scale-out only after two minutes, and the next scale-out may use its whole budget. If help is
// true, rest retries the cancelled steps, as an operator would.
func (d *driver) rest(ctx context.Context, limit time.Duration, help bool) error {
	var retried time.Time
	return until(ctx, limit, func() error {
		if help && time.Since(retried) > 5*time.Second { // a cancellation may take effect later, so retry again
			if err := d.retry(ctx); err != nil {
				return err
			}
			retried = time.Now()
		}
		seen := d.loop(ctx, func(seen map[string]listing) []op {
			return asked(seen,
				func(i listed) bool { return i.failed })
		})
		if !d.s.lists(seen) {
			return errors.New("no good Refresh")
		}
		return d.s.whole(seen)
	})
}

// retry sends the signal retry to each group, as an operator would. The steps that an operator has cancelled wait for
// this signal, and continue after it.
func (d *driver) retry(ctx context.Context) error {
	for group := range d.s.groups {
		err := d.s.api.SignalWorkflow(ctx, workflows.NodeGroupID(group), "", workflows.SignalRetry, nil)
		// the group's workflow has ended, so it has no stuck step
		if notFound := (*serviceerror.NotFound)(nil); err != nil && !errors.As(err, &notFound) {
			return fmt.Errorf("signal group %s: %w", group, err)
		}
	}
	return nil
}

// asked returns deletions of all instances for which the function `meant` returns true.
func asked(seen map[string]listing, meant func(listed) bool) []op {
	var ops []op
	for id, v := range seen {
		var names []string
		for _, i := range v.list {
			if meant(i) {
				names = append(names, i.name)
			}
		}
		if len(names) > 0 {
			ops = append(ops, op{group: id, kind: "delete", names: names})
		}
	}
	return ops
}

// empty deletes all instances and waits until no object is left in any cluster.
func (d *driver) empty(ctx context.Context, limit time.Duration) error {
	if err := until(ctx, limit, func() error {
		seen := d.loop(ctx, func(seen map[string]listing) []op {
			return asked(seen,
				func(i listed) bool { return i.counts })
		})
		if !d.s.lists(seen) {
			return errors.New("no good Refresh")
		}
		for id, v := range seen {
			if len(v.list) > 0 {
				return fmt.Errorf("group %s lists %+v", id, v.list)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return until(ctx, limit, func() error {
		kept, err := d.providers(ctx)
		if err != nil {
			return err
		}
		w, err := d.s.world.Snapshot()
		if err != nil {
			return err
		}
		if c := w.Counts(); c != (sim.Counts{Peerings: kept, Tenants: kept}) {
			return fmt.Errorf("I9: %d peerings are kept for a while, and there are %+v", kept, c)
		}
		return nil
	})
}

// keptAtMost bounds the time for which a peering without holds may be kept: five minutes after a recovery, or after
// the provider found the peering in use.
const keptAtMost = 5*time.Minute + 30*time.Second

// providers returns the number of peerings that are kept without a hold. A provider removes such a peering minutes
// after it has recovered or has found the peering in use. Every other peering must be gone, and no hold may exist.
func (d *driver) providers(ctx context.Context) (kept int, err error) {
	w, err := d.s.world.Snapshot()
	if err != nil {
		return 0, err
	}
	all := flow.NewEntities(d.s.api, "", "")
	for _, id := range d.s.providers {
		p, err := all.Status(ctx, id)
		switch {
		case errors.Is(err, fleet.ErrNotRunning) && w.Consumer.Peerings[id] == nil:
			continue
		case errors.Is(err, fleet.ErrNotRunning):
			return 0, fmt.Errorf("there is a peering without provider entity: %s", id)
		case err != nil:
			return 0, err
		case len(p.Holds) > 0:
			return 0, fmt.Errorf("I9: provider %s has live holds: %v", id, p.Holds)
		case slices.Contains([]fleet.PeeringPhase{fleet.Absent, fleet.CoolOff}, p.Phase):
		case p.Phase == fleet.Lingering && time.Since(p.Since) < keptAtMost:
			kept++
		default:
			return 0, fmt.Errorf("provider %s is %s since %s", id, p.Phase, p.Since)
		}
	}
	return kept, nil
}
