package comparison

import (
	"maps"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// maxRows bounds the number of rows that one entity receives for a round. Later rounds report the rest.
const maxRows = 500

// GroupDiffers compares one group's snapshot with the existing objects.
func GroupDiffers(g fleet.Snapshot, found []fleet.Found) fleet.Differences {
	d := fleet.Differences{Empty: true}
	rows := make(map[string]fleet.InstanceView, len(g.Instances))
	for _, row := range g.Instances {
		rows[fleet.ObjectName(row.Name, row.Attempt)] = row
	}
	seen := map[string]bool{}
	for _, f := range found {
		if f.Attempt.Group != g.Group {
			continue
		}
		d.Empty = false
		name := f.Attempt.ObjectName()
		seen[name] = true
		row, booked := rows[name]
		if agrees := booked && agrees(row, f); !agrees && len(d.Found) < maxRows {
			d.Found = append(d.Found, f)
		}
	}
	for _, row := range g.Instances {
		if row.Phase == fleet.Ready && !seen[fleet.ObjectName(row.Name, row.Attempt)] && len(d.Missing) < maxRows {
			d.Missing = append(d.Missing, row.Name)
		}
	}
	return d
}

// agrees reports whether the objects of a booked instance match its row. The objects of an instance that is being
// created or removed always match, because its driver decides about them.
func agrees(v fleet.InstanceView, f fleet.Found) bool {
	switch v.Phase {
	case fleet.Ready:
		return f.Slice && f.Virtual && f.Node && f.Whole() && f.Ready != v.NotReady
	case fleet.Failed:
		return false
	default:
		return true
	}
}

// ProviderDiffers compares one provider's holds with the existing objects and with the groups' bookings. peers lists
// the providers to which we have a peering. unread reports whether a group could not be read. Holds of an unread group
// are never reported as unused, because an unread group resembles a group without instances.
func ProviderDiffers(p fleet.ProviderSnapshot, groups []fleet.Snapshot, unread func(group string) bool,
	found []fleet.Found, peers []fleet.Provider) fleet.Differences {
	peered := slices.ContainsFunc(peers, func(peer fleet.Provider) bool { return peer.ID == p.ID })
	d := fleet.Differences{Remains: p.Phase == fleet.Absent && peered, Unpeered: lacksPeering(p, peered)}
	exists := map[string]bool{}
	for _, f := range found {
		name := f.Attempt.ObjectName()
		if f.Attempt.Provider.ID != p.ID {
			continue
		}
		exists[name] = true
		if !slices.Contains(p.Holds, name) && !f.Terminating && len(d.Unheld) < maxRows {
			d.Unheld = append(d.Unheld, name)
		}
	}
	d.Unused = unusedOf(p, exists, neededOf(p.ID, groups), unread)
	return d
}

// unusedOf returns the holds without objects that no group needs, except holds of groups that could not be read.
func unusedOf(p fleet.ProviderSnapshot, exists, needed map[string]bool, unread func(string) bool) (unused []string) {
	for _, key := range slices.Concat(p.Holds, slices.Sorted(maps.Keys(p.Standby))) {
		used := exists[key] || needed[key] || needed[fleet.InstanceOfKey(key)]
		if !used && !unread(fleet.GroupOfKey(key)) && len(unused) < maxRows {
			unused = append(unused, key)
		}
	}
	return unused
}

// neededOf returns the keys of the holds that Ready instances and standbys need at the provider. An instance that is
// being created or removed may need any of its keys, so the result contains its name instead of a key.
func neededOf(provider string, groups []fleet.Snapshot) map[string]bool {
	needed := map[string]bool{}
	for _, g := range groups {
		for _, h := range g.Standby {
			needed[h.Key] = h.Provider == provider
		}
		for _, row := range g.Instances {
			switch settled := row.Phase == fleet.Ready && row.Provider != ""; {
			case row.Phase == fleet.Failed:
			case settled:
				needed[fleet.ObjectName(row.Name, row.Attempt)] = row.Provider == provider
			default:
				needed[row.Name] = true
			}
		}
	}
	return needed
}

// lacksPeering reports whether a standby needs a peering that does not exist.
func lacksPeering(s fleet.ProviderSnapshot, peered bool) bool {
	return !peered && s.Phase == fleet.Established && len(s.Standby) > 0
}
