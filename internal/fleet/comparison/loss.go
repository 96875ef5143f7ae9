package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Rounds usually start a minute apart, and sometimes sooner.
const (
	// lossEvery is the shortest time between two rounds that declare new losses.
	lossEvery = 55 * time.Second
	// early is the tolerance for a round that starts too early. Suppose that a budget is one minute, and that the second
	// round starts a millisecond less than a minute after the first. Without the tolerance the silence would exceed the
	// budget only at the third round.
	early = 5 * time.Second
)

// losses returns, by group, the instances that two consecutive rounds show to be lost. Instances whose slice or Tenant
// the provider has withdrawn come first. In one minute, losses returns at most a third of all instances (rounded up).
func losses(groups []fleet.Snapshot, last, now Outlook) map[string][]fleet.Loss {
	again := now.At.Sub(now.Sentenced) < lossEvery // then only losses that the groups have refused are repeated
	if again && !allStay(groups, now.Lost) {
		return nil
	}
	type candidate struct {
		fleet.Loss
		group string
		since time.Time
	}
	var all []candidate
	total := 0
	for _, g := range groups {
		for _, row := range g.Instances {
			if row.Counts {
				total++
			}
			if again && !slices.Contains(now.Lost, row.Name) {
				continue
			}
			if v := lossOf(g, row, last, now); v != nil {
				all = append(all, candidate{Loss: *v, group: g.Group, since: row.NotReadySince})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.Silent != b.Silent {
			return map[bool]int{false: -1, true: 1}[a.Silent]
		}
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.Instance, b.Instance))
	})
	out := map[string][]fleet.Loss{}
	for _, c := range all[:min(len(all), (total+2)/3)] {
		out[c.group] = append(out[c.group], c.Loss)
	}
	return out
}

// allStay reports whether all named instances still run, because their groups have refused the losses. It returns
// false if groups do not contain an instance: the instance may be lost, or its group was not read.
func allStay(groups []fleet.Snapshot, names []string) bool {
	stays := map[string]bool{}
	for _, g := range groups {
		for _, row := range g.Instances {
			stays[row.Name] = isSettled(row)
		}
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !stays[name] })
}

// losesSoon reports whether the next rounds may find that an instance is lost: its Node is not ready, and its provider
// or the network does not answer.
func losesSoon(groups []fleet.Snapshot, now Outlook) bool {
	for _, g := range groups {
		for _, row := range g.Instances {
			e := now.Of(row.Provider)
			silent := e.Access == fleet.AccessSilent && !now.Isolated || !e.Broken.IsZero() && !e.Here
			if isSettled(row) && row.NotReady && silent {
				return true
			}
		}
	}
	return false
}

// lossOf returns the loss of the row's instance, or nil if the instance is not lost.
func lossOf(g fleet.Snapshot, row fleet.InstanceView, last, now Outlook) *fleet.Loss {
	e := now.Of(row.Provider)
	if !isSettled(row) || g.Spec == nil || e.Stale {
		return nil
	}
	loss := &fleet.Loss{Instance: row.Name, Attempt: row.Attempt}
	if e.Access == fleet.AccessGranted && last.Of(row.Provider).Access == fleet.AccessGranted {
		loss.Reason = withdrawnReason(row, last.Of(row.Provider), e)
	}
	b := g.Spec.Budgets.WithDefaults()
	switch {
	case loss.Reason != "":
	case e.Access == fleet.AccessGranted && cutTooLong(b, row, e, now):
		loss.Silent = true
		loss.Reason = fmt.Sprintf("its Node is not ready and the network with provider %s does not work, for longer than "+
			"budgets.unready: %s", row.Provider, e.Network)
	case e.Access == fleet.AccessSilent && last.Of(row.Provider).Access == fleet.AccessSilent &&
		silentTooLong(b, row, e, now):
		loss.Silent = true
		loss.Reason = fmt.Sprintf("its Node is not ready and provider %s does not answer, for longer than budgets.unready",
			row.Provider)
	default:
		return nil
	}
	return loss
}

// withdrawnReason returns a text if the provider has withdrawn the instance's capacity, and "" otherwise. Two
// consecutive rounds in which the provider answered must have found this.
func withdrawnReason(row fleet.InstanceView, before, e Evidence) string {
	name := fleet.ObjectName(row.Name, row.Attempt)
	switch {
	case e.Tenant == before.Tenant && e.hasWithdrawn():
		return fmt.Sprintf("provider %s has our Tenant %s", row.Provider, e.Tenant)
	case slices.Contains(e.Absent, name) && slices.Contains(before.Absent, name):
		return fmt.Sprintf("provider %s has no ResourceSlice %s any longer", row.Provider, name)
	}
	return ""
}

// isSettled reports whether the instance is Ready and counts: no request for its removal exists.
func isSettled(v fleet.InstanceView) bool { return v.Phase == fleet.Ready && v.Counts }

// hasWithdrawn reports whether the provider has withdrawn all our capacity, according to the state of our Tenant.
func (e Evidence) hasWithdrawn() bool {
	return e.Tenant == fleet.RefusingDrained || e.Tenant == fleet.RefusingRemoved
}

// silentTooLong reports whether the Node is not ready and its provider has not answered for budgets.unready. The group
// checks by its own clock for how long the Node has not been ready. A silence during an isolation of this cluster does
// not count until the isolation has lasted for budgets.isolated. At least two consecutive rounds must have found the
// silence.
func silentTooLong(b fleet.Budgets, row fleet.InstanceView, e Evidence, now Outlook) bool {
	since, at := e.Since, now.At.Add(early)
	switch {
	case now.Isolated && !b.Isolated.Over(now.IsolatedSince, at):
		return false
	case !now.Isolated && now.IsolatedUntil.After(since):
		since = now.IsolatedUntil
	}
	return row.NotReady && b.Unready.Over(since, at)
}

// cutTooLong reports whether the Node is not ready and the network with its provider has not worked for
// budgets.unready, while our own gateway runs. The group checks for how long the Node has not been ready.
func cutTooLong(b fleet.Budgets, row fleet.InstanceView, e Evidence, now Outlook) bool {
	return row.NotReady && !e.Here && b.Unready.Over(e.Broken, now.At.Add(early))
}
