package fleet

import (
	"fmt"
	"slices"
	"strings"
)

const machinePage = `# The machines

This page shows every phase change of an instance and of a peering. ` + "`make update`" + ` generates it from the tables in ` + "`internal/fleet`" + `.
The comments of ` + "`machine.go`" + ` and ` + "`providertable.go`" + ` in that package define the events.
[architecture.md](architecture.md#the-machine) describes how the code applies the tables.

Each arrow is a move to another phase. Its label is the event, with a condition in brackets. For example, the arrow ` + "`done [no hold]`" + `
is the move for the event ` + "`done`" + ` while the condition ` + "`no hold`" + ` is true. The arrow ` + "`done`" + ` without brackets is the move while no
condition of that event is true. Only moves of a peering have conditions. If several are true, the first one in the phase's row
below decides:

| condition | true while |
|---|---|
| ` + "`refusing`" + ` | the provider refuses this cluster. Each move with this condition also refuses the waiting holds |
| ` + "`no hold`" + ` | the peering has no hold, so no node and no standby needs it |
| ` + "`removable`" + ` | the peering has no hold, and its offer does not have ` + "`unpeer: never`" + ` |

## Instance

The main path: Cluster Autoscaler requests a node, the first selected provider supplies it, and later Cluster Autoscaler deletes it.

%s
All moves:

%s
## Peering

The main path: the first hold starts the peering. After the release of the last hold the peering stays for its linger time. Then it is
removed.

%s
All moves:

%s
## Every phase and event

Each row is a phase, and each column after the first ones is an event. A cell names the next phase, after its condition in brackets, and
then the effects of the move, after a semicolon. *stays* means that the phase does not change and only the effects apply. A dash means
that this phase ignores the event.

`

// Diagrams returns both machines as Mermaid state diagrams: first the main path, then all moves, then the tables.
func Diagrams() string {
	instance, peering := instanceArrows(), peeringArrows()
	page := fmt.Sprintf(machinePage,
		drawing(along(instance, "", "", "done", "done", "done", "done", "done", "deleted", "done", "done", "")),
		drawing(instance),
		drawing(along(peering, "", "", "acquired", "done", "emptied", "elapsed", "done [no hold]")),
		drawing(peering))
	return page + strings.TrimPrefix(strings.ReplaceAll("\n"+Matrix(), "\n# ", "\n### "), "\n")
}

// arrow is one move in a diagram. An arrow without the field from begins at the start of the diagram. An arrow
// without the field to leads to the end of the diagram.
type arrow struct{ from, to, label string }

func instanceArrows() []arrow {
	all := []arrow{{to: string(Pending)}}
	for _, r := range Machine {
		for _, k := range EventKinds {
			if m := r.Moves[k]; m.To != "" {
				all = append(all, arrow{string(r.Phase), string(m.To), string(k)})
			}
		}
	}
	return append(all, arrow{from: string(Released)})
}

func peeringArrows() []arrow {
	all := []arrow{{to: string(Absent)}}
	for _, r := range PeeringMachine {
		for _, e := range PeeringEvents {
			m := r.Moves[e]
			if m.To != "" {
				all = append(all, arrow{string(r.Phase), string(m.To), string(e)})
			}
			for _, c := range m.conditions() {
				all = append(all, arrow{string(r.Phase), string(c.to), fmt.Sprintf("%s [%s]", e, c.name)})
			}
		}
	}
	return all
}

// along returns the arrows of one path within all. The parameter from is the phase in which the path begins, and
// labels are the labels that it follows. The function panics when the tables do not contain the path.
func along(all []arrow, from string, labels ...string) (path []arrow) {
	for _, label := range labels {
		i := slices.IndexFunc(all, func(a arrow) bool { return a.from == from && a.label == label })
		if i < 0 {
			panic(fmt.Sprintf("the main path leaves %s by %q, and the table has no such move: correct the path", from, label))
		}
		path = append(path, all[i])
		from = all[i].to
	}
	return path
}

// drawing returns the arrows as a diagram. Moves between the same two phases become one arrow with all labels.
func drawing(all []arrow) string {
	var ends []arrow
	labels := map[arrow][]string{}
	for _, a := range all {
		end := arrow{from: a.from, to: a.to}
		if labels[end] == nil {
			ends = append(ends, end)
		}
		labels[end] = append(labels[end], a.label)
	}
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, end := range ends {
		line := fmt.Sprintf("  %s --> %s: %s", orEdge(end.from), orEdge(end.to), strings.Join(labels[end], ", "))
		b.WriteString(strings.TrimSuffix(line, ": ") + "\n")
	}
	return b.String() + "```\n"
}

func orEdge(phase string) string {
	if phase == "" {
		return "[*]"
	}
	return phase
}
