package fleet

import (
	"fmt"
	"strings"
)

// PeeringEvents lists every event in the order of the table.
var PeeringEvents = []PeeringEvent{PeeringAcquired, PeeringDone, PeeringFailed, PeeringEmptied, PeeringElapsed,
	PeeringBroken, PeeringInUse, PeeringRefused, PeeringLifted}

// Matrix returns both tables as text, with a row per phase and a column per event. docs/machine.md contains this text.
func Matrix() string {
	var b strings.Builder
	b.WriteString("# Instance\n\n| phase | step | counts | CA sees |")
	for _, k := range EventKinds {
		fmt.Fprintf(&b, " %s |", k)
	}
	b.WriteString("\n|" + strings.Repeat("---|", 4+len(EventKinds)) + "\n")
	for _, r := range Machine {
		state := string(r.State)
		switch {
		case r.Phase == Failed:
			state += " + error info"
		case state == "":
			state = "not listed"
		}
		fmt.Fprintf(&b, "| %s | %s | %v | %s |", r.Phase, orDash(string(r.Step)), r.Counts, state)
		for _, k := range EventKinds {
			fmt.Fprintf(&b, " %s |", move(r.Moves, k))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n# Peering\n\n| phase | runs | an acquire is |")
	for _, e := range PeeringEvents {
		fmt.Fprintf(&b, " %s |", e)
	}
	b.WriteString("\n|" + strings.Repeat("---|", 3+len(PeeringEvents)) + "\n")
	for _, r := range PeeringMachine {
		answer := "refused"
		switch {
		case r.Grants:
			answer = "granted"
		case r.Waits:
			answer = "waiting"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", r.Phase, orDash(string(r.Runs)), answer)
		for _, e := range PeeringEvents {
			fmt.Fprintf(&b, " %s |", move(r.Moves, e))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (l *Ledger) String() string {
	return fmt.Sprintf("group %s, epoch %s, revision %d, target %d", l.Group, l.Epoch, l.Revision, l.Target())
}

// move returns the move of a row for an event. "-" means that the event is ignored.
func move[E comparable, M fmt.Stringer](moves map[E]M, event E) string {
	if m, ok := moves[event]; ok {
		return m.String()
	}
	return "-"
}

func (m Move) String() string {
	var effects []string
	if m.Blame {
		effects = append(effects, "the provider is not tried again")
	}
	if m.Undo {
		effects = append(effects, "the attempt is undone")
	}
	if m.Force {
		effects = append(effects, "pods are not waited for")
	}
	if m.Stuck {
		effects = append(effects, "the instance is stuck")
	}
	return strings.Join(append([]string{orStays(string(m.To))}, effects...), "; ")
}

func (m PeeringMove) String() string {
	s := orStays(string(m.To))
	if conditions := m.conditions(); len(conditions) > 0 {
		var ends []string
		for _, c := range conditions {
			ends = append(ends, "["+c.name+"] "+string(c.to))
		}
		s = strings.Join(ends, ", ") + ", else " + s
	}
	if m.Grant {
		s += "; grants the waiting holds"
	}
	if m.RefuseWaiting {
		s += "; refuses the waiting holds"
	}
	return s
}

// condition names a condition that changes the end of a move. If it holds, the move leads to the phase in the field
// to. Otherwise the move leads to the phase of the table.
type condition struct {
	name string
	to   PeeringPhase
}

// conditions returns the move's conditions in the order in which provider.State.Apply checks them.
func (m PeeringMove) conditions() (all []condition) {
	if m.ToRefused != "" {
		all = append(all, condition{"refusing", m.ToRefused})
	}
	switch m.ToEmpty {
	case "":
	case Removing:
		all = append(all, condition{"removable", m.ToEmpty})
	default:
		all = append(all, condition{"no hold", m.ToEmpty})
	}
	return all
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func orStays(s string) string {
	if s == "" {
		return "stays"
	}
	return s
}
