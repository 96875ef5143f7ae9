package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Rounds begin a minute apart, more or less, or sooner.
const (
	// sentenceEvery is how often instances may be sentenced.
	sentenceEvery = 55 * time.Second
	// early is by how much a round may come too early for what the rounds before have seen: else a silence of a minute
	// would be over with the second round or with the third, by a millisecond.
	early = 5 * time.Second
)

// losses are the instances, by group, that two rounds in a row show to be lost; the slices that the provider lacks
// and the Tenants that are closed first. At most a third, rounded up, of all instances is lost a minute.
func losses(groups []fleet.Snapshot, last, now Outlook) map[string][]fleet.Loss {
	again := now.At.Sub(now.Sentenced) < sentenceEvery // then only what the groups have refused
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

// allStay reports whether none of these instances is lost: their groups have refused that. An instance that is not
// found may be lost, or its group was not read.
func allStay(groups []fleet.Snapshot, names []string) bool {
	stays := map[string]bool{}
	for _, g := range groups {
		for _, row := range g.Instances {
			stays[row.Name] = isSettled(row)
		}
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !stays[name] })
}

// losesSoon reports whether an instance may be lost by the next rounds: its Node is not ready, and its provider or the
// network does not answer.
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

// lossOf judges one row; nil when the instance stays.
func lossOf(g fleet.Snapshot, row fleet.InstanceView, last, now Outlook) *fleet.Loss {
	e := now.Of(row.Provider)
	if !isSettled(row) || g.Spec == nil || e.Stale {
		return nil
	}
	loss := &fleet.Loss{Instance: row.Name, Attempt: row.Attempt}
	if e.Access == fleet.AccessGranted && last.Of(row.Provider).Access == fleet.AccessGranted {
		loss.Reason = takenBack(row, last.Of(row.Provider), e)
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

// takenBack is what the provider has taken back, by two rounds in which it answered; "" for nothing.
func takenBack(row fleet.InstanceView, before, e Evidence) string {
	name := fleet.ObjectName(row.Name, row.Attempt)
	switch {
	case e.Tenant == before.Tenant && e.tookBack():
		return fmt.Sprintf("provider %s has our Tenant %s", row.Provider, e.Tenant)
	case slices.Contains(e.Absent, name) && slices.Contains(before.Absent, name):
		return fmt.Sprintf("provider %s has no ResourceSlice %s any longer", row.Provider, name)
	}
	return ""
}

// isSettled reports whether the instance is Ready and nobody gives it back.
func isSettled(v fleet.InstanceView) bool { return v.Phase == fleet.Ready && v.Counts }

// tookBack reports whether nothing that we own is left with the provider, by what its people have made of our Tenant.
func (e Evidence) tookBack() bool {
	return e.Tenant == fleet.RefusingDrained || e.Tenant == fleet.RefusingRemoved
}

// silentTooLong reports whether the Node is not ready, and its provider has not answered for budgets.unready. The group
// itself judges for how long the Node is not ready: that is a time of another clock. What a provider was silent while
// this cluster was isolated does not count, until that has lasted for budgets.isolated. No silence lasts but over two
// rounds in a row.
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

// cutTooLong reports whether the Node is not ready, and the network with its provider has not worked for
// budgets.unready, and not for want of our own gateway. For how long the Node is not ready the group itself judges.
func cutTooLong(b fleet.Budgets, row fleet.InstanceView, e Evidence, now Outlook) bool {
	return row.NotReady && !e.Here && b.Unready.Over(e.Broken, now.At.Add(early))
}
