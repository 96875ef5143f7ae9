package fleet

import (
	"fmt"
	"strings"
)

// PeeringEvents lists every event, in the order of the table.
var PeeringEvents = []PeeringEvent{PeeringAcquired, PeeringDone, PeeringFailed, PeeringEmptied, PeeringElapsed,
	PeeringBroken, PeeringInUse, PeeringRefused, PeeringLifted}

// Matrix prints both tables as text: a row per phase, a column per event. docs and a golden test are made from it.
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
	b.WriteString("\n# Peering\n\n| phase | runs | acquire gets |")
	for _, e := range PeeringEvents {
		fmt.Fprintf(&b, " %s |", e)
	}
	b.WriteString("\n|" + strings.Repeat("---|", 3+len(PeeringEvents)) + "\n")
	for _, r := range PeeringMachine {
		gets := "refused"
		switch {
		case r.Grants:
			gets = "granted"
		case r.Waits:
			gets = "waits"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", r.Phase, orDash(string(r.Runs)), gets)
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

// move is a row's move for an event; "-": it is ignored.
func move[E comparable, M fmt.Stringer](moves map[E]M, event E) string {
	if m, ok := moves[event]; ok {
		return m.String()
	}
	return "-"
}

func (m Move) String() string {
	var parts []string
	switch {
	case m.To != "":
		parts = append(parts, string(m.To))
	default:
		parts = append(parts, "stays")
	}
	if m.Blame {
		parts = append(parts, "provider refused")
	}
	if m.Undo {
		parts = append(parts, "undo")
	}
	if m.Force {
		parts = append(parts, "forced")
	}
	if m.Stuck {
		parts = append(parts, "stuck")
	}
	return strings.Join(parts, ", ")
}

func (m PeeringMove) String() string {
	s := orStays(string(m.To))
	if m.ToEmpty != "" {
		s += " (no hold: " + string(m.ToEmpty) + ")"
	}
	if m.ToRefused != "" {
		s += " (refused: " + string(m.ToRefused) + ")"
	}
	if m.Grant {
		s += ", grants the waiting"
	}
	if m.RefuseWaiting {
		s += ", refuses the waiting"
	}
	return s
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
