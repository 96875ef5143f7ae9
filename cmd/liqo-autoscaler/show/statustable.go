package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Table prints the groups, then their faults and the faults of providers, then the instances.
func (s Status) Table(out io.Writer, style output.Style) error {
	if len(s.Groups) == 0 {
		text := "No node groups run."
		if s.selected {
			text = "No node group has such an instance."
		}
		_, err := fmt.Fprintln(out, text)
		return err
	}
	header := []string{"NAME", "MIN", "MAX", "TARGET", "READY", "CREATING", "DELETING", "FAILED", "SPEC", "AGE"}
	if style.Wide {
		header = append(header, "NOTREADY", "SHAPE", "PAUSED", "EPOCH", "COST/H", "THIS MONTH", "REACHED")
	}
	rows := output.Rows(s.Groups, func(g Group) []string {
		row := []string{g.Name}
		for _, n := range []int{g.Min, g.Max, g.Target, g.Ready, g.Creating, g.Deleting, g.Failed} {
			row = append(row, strconv.Itoa(n))
		}
		row = append(row, g.Spec, style.Age(g.Started))
		if style.Wide {
			row = append(row, strconv.Itoa(g.NotReady), resources(style, g.Shape), strconv.FormatBool(g.Paused), g.Epoch)
			row = append(row, g.Cost.cells()...)
		}
		return row
	})
	if err := style.Table(out, header, rows, "SPEC", "MIN", "MAX", "AGE"); err != nil {
		return err
	}
	for _, t := range s.sections(style) {
		if len(t.rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
		if err := style.Table(out, t.header, t.rows, "ATTEMPT", "GROUP", "SINCE"); err != nil {
			return err
		}
	}
	return nil
}

// section is a table that is omitted when it has no rows.
type section struct {
	header []string
	rows   [][]string
}

// sections returns the tables that follow the table of the groups. The message of a group's condition is not
// shortened, because the remedy is at its end.
func (s Status) sections(style output.Style) []section {
	return []section{
		{[]string{"NODE GROUP", "CONDITION", "WHY"}, s.groupConditions()},
		{[]string{"COST OF", "PROVIDER", "PER HOUR", "TODAY", "SO FAR", "SINCE", "KEPT FOR"}, s.costs(style)},
		{[]string{"STANDBY", "GROUP", "STATE", "SINCE"}, output.Rows(s.Standby, func(h Standby) []string {
			return []string{h.Provider, h.Group, string(h.State), style.Age(h.Since)}
		})},
		{[]string{"PROVIDER", "CONDITION", "SINCE", "WHY"}, output.Rows(s.Conditions, func(c Condition) []string {
			return []string{c.Provider, c.Name, style.Age(c.Since), style.Cut(c.Message)}
		})},
		s.instances(style),
		{[]string{"REFUSING", "BY", "SINCE", "UNTIL", "WHY"}, output.Rows(s.Refusing, func(r Refusing) []string {
			until := "it ends the refusal"
			if !r.Until.IsZero() {
				until = r.Until.UTC().Format(time.RFC3339)
			}
			return []string{r.Provider, string(r.Kind), style.Age(r.Since), until, style.Cut(r.Reason)}
		})},
		{[]string{"PODS ON", "GROUP", "VERDICT", "PODS", "OVERDUE", "LONGEST", "SINCE", "WHY"}, andMore(s.Findings.MorePods,
			output.Rows(s.Findings.Pods, func(p market.PodsWaiting) []string {
				return []string{p.Provider, p.Group, p.Verdict, strconv.Itoa(p.Count), strconv.Itoa(p.Overdue), p.Pod,
					style.Age(p.Since), style.Cut(p.Why)}
			}))},
		{[]string{"OBSERVER", "LAST ROUND", "UNREAD", "WHY"}, s.observer(style)},
		{[]string{"DIFFERENT NODE", "GROUP", "HOW"}, andMore(s.Findings.MoreNodes,
			output.Rows(s.Findings.Nodes, func(n market.DifferentNode) []string {
				return []string{n.Node, n.Group, style.Cut(n.Differs)}
			}))},
		{[]string{"LEFT ON", "SINCE", "WHAT", "STAYS BECAUSE"}, andMore(s.Findings.MoreLeft,
			output.Rows(s.Findings.Left, func(l market.Left) []string {
				return []string{l.Provider, style.Age(l.Since), style.Cut(l.Object), style.Cut(l.KeptBecause)}
			}))},
	}
}

// observer returns the row for the observer's state.
func (s Status) observer(style output.Style) [][]string {
	o := s.Findings.Observer
	if o == nil {
		return nil
	}
	state := "running"
	switch {
	case o.Paused:
		state = "paused"
	case o.Failed != "":
		state = "failing"
	}
	return [][]string{{state, style.Age(o.Complete), strconv.Itoa(o.Unread), style.Cut(o.Failed)}}
}

// groupConditions returns the rows of all groups' conditions.
func (s Status) groupConditions() (rows [][]string) {
	for _, g := range s.Groups {
		for _, c := range g.Conditions {
			rows = append(rows, []string{g.Name, c.Name, c.Message})
		}
	}
	return rows
}

// costs returns the rows of a wide table with the costs of each group on each provider.
func (s Status) costs(style output.Style) (rows [][]string) {
	for _, g := range s.Groups {
		if g.Cost == nil || !style.Wide {
			continue
		}
		for _, p := range g.Cost.Providers {
			rows = append(rows, []string{g.Name, p.Provider, perHour(p.PerHour, p.Unpriced, g.Cost.Currency),
				sum(p.Today, p.Unpriced, g.Cost.Currency), sum(p.SoFar, p.Unpriced, g.Cost.Currency),
				g.Cost.Since.Format(time.RFC3339), style.Cut(s.keptFor(g.Name, p.Provider))})
		}
	}
	return rows
}

// keptFor returns the claim whose volume keeps a node of the group on the provider, so that the node continues to
// cost money. It returns "" if no such claim exists.
func (s Status) keptFor(group, provider string) string {
	for _, k := range s.Findings.Kept {
		if k.Group == group && k.Provider == provider {
			return k.For()
		}
	}
	return ""
}

// andMore adds a row with the number of omitted rows.
func andMore(more int, rows [][]string) [][]string {
	if more == 0 || len(rows) == 0 {
		return rows
	}
	return append(rows, append([]string{fmt.Sprintf("and %d more", more)}, make([]string, len(rows[0])-1)...))
}

func (s Status) instances(style output.Style) section {
	header := []string{"INSTANCE", "GROUP", "PHASE", "PROVIDER", "ATTEMPT", "SINCE", "WHY"}
	switch {
	case style.Wide:
		header = []string{"INSTANCE", "GROUP", "PHASE", "STATE", "PROVIDER", "ATTEMPT", "NODE", "SINCE", "WHY"}
	}
	return section{header, output.Rows(s.Instances, func(i Instance) []string {
		row := []string{
			i.Name, i.Group, i.Shown(), i.Provider, strconv.Itoa(i.Attempt), style.Age(i.Since),
			style.Cut(i.Why()),
		}
		switch {
		case style.Wide:
			row = slices.Insert(row, 5, i.Node)
			row = slices.Insert(row, 3, string(i.State))
		}
		return row
	})}
}

// Change is one line of `status --watch -o json`. It describes an instance that has changed, appeared or disappeared
// (phase Released). Without an instance's name it describes a group whose conditions have changed.
type Change struct {
	At         time.Time           `json:"at"`
	Target     int                 `json:"target"` // target size of the group after the change
	Conditions []fleet.GroupNotice `json:"conditions,omitempty"`
	Instance
}

// what returns the name of the changed instance or, without an instance, of the group.
func (c Change) what() string {
	if c.Name == "" {
		return "group " + c.Group
	}
	return c.Name
}

func (c Change) why() string {
	if c.Name != "" {
		return c.Why()
	}
	if len(c.Conditions) == 0 {
		return "no condition"
	}
	var all []string
	for _, n := range c.Conditions {
		all = append(all, n.Name+": "+n.Message)
	}
	return strings.Join(all, "; ")
}

func (c Change) attempt() string {
	if c.Name == "" {
		return output.None
	}
	return strconv.Itoa(c.Attempt)
}

// These formats have fixed widths, because changes are printed one by one. A longer text shifts the columns after it.
const (
	changeFormat = "%-19s  %-26s  %-11s  %6s  %-12s  %7s  %s\n"
	changeTime   = time.DateTime
	// On a narrow terminal the text is printed on a separate line.
	narrowFormat = "%-14s  %-24s  %s\n"
	narrowTime   = "01-02 15:04:05"
	narrowWidth  = 110
)

func narrow(style output.Style) bool {
	return !style.Wide && style.Width > 0 && style.Width < narrowWidth
}

// ChangeHeader prints the columns' names.
func ChangeHeader(out io.Writer, style output.Style) (err error) {
	if narrow(style) {
		_, err = fmt.Fprintf(out, narrowFormat, "TIME", "INSTANCE", "PHASE")
		return err
	}
	_, err = fmt.Fprintf(out, changeFormat, "TIME", "INSTANCE", "PHASE", "TARGET", "PROVIDER", "ATTEMPT", "WHY")
	return err
}

// Row prints one change. It prints the date, too, because a watch may run for days.
func (c Change) Row(out io.Writer, style output.Style) (err error) {
	at, why := c.At.Local(), shorten.OneLine(cmp.Or(style.Cut(c.why()), output.None))
	phase := cmp.Or(c.Shown(), output.None)
	if narrow(style) {
		if c.Provider != "" {
			phase += " " + shorten.OneLine(c.Provider)
		}
		_, err = fmt.Fprintf(out, narrowFormat, at.Format(narrowTime), c.what(), phase)
		if why != output.None {
			_, err = fmt.Fprintf(out, "    %s\n", why)
		}
		return err
	}
	_, err = fmt.Fprintf(out, changeFormat, at.Format(changeTime), c.what(), phase, strconv.Itoa(c.Target),
		cmp.Or(shorten.OneLine(c.Provider), output.None), c.attempt(), why)
	return err
}
