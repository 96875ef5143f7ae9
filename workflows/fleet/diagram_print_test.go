package fleet

import (
	"fmt"
	"strings"
)

// Diagrams prints both machines as Mermaid state diagrams. Moves with one end are drawn once, with all events that make
// them.
func Diagrams() string {
	var b strings.Builder
	b.WriteString("# The machines\n\nGenerated from the tables in `workflows/fleet` by `make update`.\n\n## Instance\n\n```mermaid\nstateDiagram-v2\n  [*] --> Pending\n")
	for _, r := range Machine {
		var edges edges
		for _, k := range EventKinds {
			m := r.Moves[k]
			if m.To != "" {
				edges.add(string(m.To), string(k))
			}
		}
		edges.write(&b, string(r.Phase))
	}
	b.WriteString("  Released --> [*]\n```\n\n## Peering\n\n```mermaid\nstateDiagram-v2\n  [*] --> Absent\n")
	for _, r := range PeeringMachine {
		var edges edges
		for _, e := range PeeringEvents {
			m := r.Moves[e]
			if m.To != "" {
				edges.add(string(m.To), string(e))
			}
			if m.ToEmpty != "" {
				edges.add(string(m.ToEmpty), string(e)+", no hold")
			}
			if m.ToRefused != "" {
				edges.add(string(m.ToRefused), string(e)+", refused")
			}
		}
		edges.write(&b, string(r.Phase))
	}
	b.WriteString("```\n\n## Every phase and event\n\n")
	b.WriteString(strings.ReplaceAll(Matrix(), "\n# ", "\n### "))
	return strings.Replace(b.String(), "\n# Instance", "\n### Instance", 1)
}

// edges are one phase's moves by their end, in order of first use.
type edges struct {
	order  []string
	events map[string][]string
}

func (e *edges) add(to, event string) {
	if e.events == nil {
		e.events = map[string][]string{}
	}
	if _, ok := e.events[to]; !ok {
		e.order = append(e.order, to)
	}
	e.events[to] = append(e.events[to], event)
}

func (e *edges) write(b *strings.Builder, from string) {
	for _, to := range e.order {
		fmt.Fprintf(b, "  %s --> %s: %s\n", from, to, strings.Join(e.events[to], ", "))
	}
}
