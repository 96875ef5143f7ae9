package show

import (
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Changes returns the differences between two snapshots of a group: new and changed instances, then released
// instances, then the group's conditions. The function balance returns the balance of a snapshot's account. If before
// is the zero snapshot, all instances are new.
func Changes(before, after fleet.Snapshot, balance func(fleet.Snapshot) money.Balance) []Change {
	old := map[string]fleet.InstanceView{}
	for _, v := range before.Instances {
		old[v.Name] = v
	}
	var out []Change
	add := func(v fleet.InstanceView) {
		out = append(out, Change{At: after.At.UTC(), Target: after.Target, Instance: InstanceOf(after.Group, v)})
	}
	for _, v := range after.Instances {
		if was, known := old[v.Name]; !known || differs(was, v) {
			add(v)
		}
	}
	for _, v := range before.Instances {
		if !slices.ContainsFunc(after.Instances, func(a fleet.InstanceView) bool { return a.Name == v.Name }) {
			v.Phase, v.State, v.Counts, v.Since, v.Stuck, v.NotReady, v.Failure = fleet.Released, "", false, after.At, "", false,
				nil
			add(v)
		}
	}
	was, is := before.Conditions(balance(before), 0), after.Conditions(balance(after), 0)
	same := func(a, b fleet.GroupNotice) bool { return a.Name == b.Name } // messages change often
	if !slices.EqualFunc(was, is, same) {
		out = append(out, Change{At: after.At.UTC(), Target: after.Target, Conditions: is,
			Instance: Instance{Group: after.Group}})
	}
	return out
}

func differs(a, b fleet.InstanceView) bool {
	af, bf := a.Failure, b.Failure
	a.Failure, b.Failure = nil, nil
	a.Since = b.Since // if a phase starts again, the attempt differs, too
	return a != b || (af == nil) != (bf == nil) || af != nil && *af != *bf
}
