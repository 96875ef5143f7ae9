package show

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Table prints the groups, then what is wrong with them and with providers, then the instances.
func (s Status) Table(out io.Writer, look Look) error {
	if len(s.Groups) == 0 {
		_, err := fmt.Fprintln(out, "No node groups run.")
		return err
	}
	header := []string{"NAME", "MIN", "MAX", "TARGET", "READY", "CREATING", "DELETING", "FAILED", "SPEC", "AGE"}
	if look.Wide {
		header = append(header, "NOTREADY", "SHAPE", "PAUSED", "EPOCH", "COST/H", "THIS MONTH", "REACHED")
	}
	var rows [][]string
	for _, g := range s.Groups {
		row := []string{g.Name}
		for _, n := range []int{g.Min, g.Max, g.Target, g.Ready, g.Creating, g.Deleting, g.Failed} {
			row = append(row, strconv.Itoa(n))
		}
		row = append(row, g.Spec, look.age(g.Started))
		if look.Wide {
			row = append(row, strconv.Itoa(g.NotReady), look.resources(g.Shape), strconv.FormatBool(g.Paused), g.Epoch)
			row = append(row, g.Cost.cells()...)
		}
		rows = append(rows, row)
	}
	if err := table(out, header, rows); err != nil {
		return err
	}
	for _, more := range []struct {
		rows  int
		print func(io.Writer, Look) error
	}{{len(s.groupConditions()), s.groupConditionTable}, {s.costs(look), s.costTable}, {len(s.Standby), s.standbyTable},
		{len(s.Conditions), s.conditionTable}, {len(s.Instances), s.instanceTable}, {len(s.Refusing), s.refusingTable},
		{len(s.Findings.Nodes), s.differentTable}, {len(s.Findings.Pods), s.misjudgedTable},
		{len(s.Findings.Left), s.leftTable}} {
		if more.rows == 0 {
			continue
		}
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
		if err := more.print(out, look); err != nil {
			return err
		}
	}
	return nil
}

func (s Status) refusingTable(out io.Writer, look Look) error {
	var rows [][]string
	for _, r := range s.Refusing {
		until := "it lifts that"
		if !r.Until.IsZero() {
			until = r.Until.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{r.Provider, string(r.Kind), look.age(r.Since), until, look.cut(r.Reason)})
	}
	return table(out, []string{"REFUSING", "BY", "SINCE", "UNTIL", "WHY"}, rows)
}

func (s Status) differentTable(out io.Writer, look Look) error {
	var rows [][]string
	for _, n := range s.Findings.Nodes {
		rows = append(rows, []string{n.Node, n.Group, look.cut(n.Differs)})
	}
	return tableAndMore(out, []string{"DIFFERENT NODE", "GROUP", "HOW"}, rows, s.Findings.MoreNodes)
}

func (s Status) misjudgedTable(out io.Writer, look Look) error {
	var rows [][]string
	for _, p := range s.Findings.Pods {
		rows = append(rows, []string{p.Pod, p.Group, look.cut(strings.Join(p.Labels, ",")),
			look.cut(strings.Join(p.Fits, ","))})
	}
	return tableAndMore(out, []string{"MISJUDGED POD", "GROUP", "SELECTS BY", "FITS ONLY ON"}, rows, s.Findings.MorePods)
}

func (s Status) leftTable(out io.Writer, look Look) error {
	var rows [][]string
	for _, l := range s.Findings.Left {
		rows = append(rows, []string{l.Provider, look.age(l.Since), look.cut(l.What), look.cut(l.Kept)})
	}
	return tableAndMore(out, []string{"LEFT ON", "SINCE", "WHAT", "STAYS BECAUSE"}, rows, s.Findings.MoreLeft)
}

func tableAndMore(out io.Writer, header []string, rows [][]string, more int) error {
	if more > 0 {
		rows = append(rows, append([]string{fmt.Sprintf("and %d more", more)}, make([]string, len(header)-1)...))
	}
	return table(out, header, rows)
}

func (s Status) instanceTable(out io.Writer, look Look) error {
	header := []string{"INSTANCE", "GROUP", "PHASE", "PROVIDER", "ATTEMPT", "SINCE", "WHY"}
	switch {
	case look.Narrow:
		header = slices.Delete(header, 1, 2) // the name tells
	case look.Wide:
		header = []string{"INSTANCE", "GROUP", "PHASE", "STATE", "PROVIDER", "ATTEMPT", "NODE", "SINCE", "WHY"}
	}
	var rows [][]string
	for _, i := range s.Instances {
		row := []string{
			i.Name, i.Group, string(i.Phase), i.Provider, strconv.Itoa(i.Attempt), look.age(i.Since),
			look.cut(i.Why()),
		}
		switch {
		case look.Narrow:
			row = slices.Delete(row, 1, 2)
		case look.Wide:
			row = slices.Insert(row, 5, i.Node)
			row = slices.Insert(row, 3, string(i.State))
		}
		rows = append(rows, row)
	}
	return table(out, header, rows)
}

// Change is one line of `status --watch -o json`: an instance that has changed, or appeared, or is gone (phase
// Released); or, without an instance's name, a group that has other conditions than before.
type Change struct {
	At         time.Time      `json:"at"`
	Target     int            `json:"target"` // of the group, after the change
	Conditions []fleet.Notice `json:"conditions,omitempty"`
	Instance
}

// what is the instance that has changed, or the group.
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
		return "no condition any more"
	}
	var all []string
	for _, n := range c.Conditions {
		all = append(all, n.Name+": "+n.Message)
	}
	return strings.Join(all, "; ")
}

func (c Change) attempt() string {
	if c.Name == "" {
		return none
	}
	return strconv.Itoa(c.Attempt)
}

// Changes are printed one by one, so their columns have fixed widths, which longer texts push.
const changeFormat = "%-12s  %-26s  %-11s  %6s  %-12s  %7s  %s\n"

// ChangeHeader prints the columns' names.
func ChangeHeader(out io.Writer) error {
	_, err := fmt.Fprintf(out, changeFormat, "TIME", "INSTANCE", "PHASE", "TARGET", "PROVIDER", "ATTEMPT", "WHY")
	return err
}

// Row prints one change.
func (c Change) Row(out io.Writer, look Look) error {
	_, err := fmt.Fprintf(out, changeFormat, c.At.Local().Format("15:04:05.000"), c.what(), orNone(string(c.Phase)),
		strconv.Itoa(c.Target), orNone(oneLine(c.Provider)), c.attempt(), oneLine(orNone(look.cut(c.why()))))
	return err
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
