package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// page collects lines. It removes control characters from texts of providers and pods, so that they cannot control the
// terminal.
type page struct{ strings.Builder }

func (p *page) line(depth int, format string, args ...any) {
	p.WriteString(strings.Repeat("  ", depth) + shorten.OneLine(fmt.Sprintf(format, args...)) + "\n")
}

func (p *page) to(out io.Writer) error {
	_, err := io.WriteString(out, p.String())
	return err
}

// notes adds a line for each input that the explanation does not consider.
func (p *page) notes(all []string) {
	for _, note := range all {
		p.line(0, "not considered: %s", note)
	}
}

// codes adds an explanation and a remedy for each code, once.
func (p *page) codes(all []fleet.Code) {
	for n, code := range all {
		row := code.Row()
		if row.Code != code || slices.Contains(all[:n], code) {
			continue // a code of another version, or a repeated code
		}
		p.line(0, "code %s: %s", code, row.Means)
		remedy := row.Remedy
		if row.Page != "" {
			remedy += " See docs/" + row.Page
		}
		p.line(1, "what to do: %s", remedy)
	}
}

// Text prints the explanation as text.
func (p Pod) Text(out io.Writer) error {
	var t page
	t.line(0, "%s: %s", cmp.Or(p.Object, "pod "+p.Pod), p.Reason)
	t.line(1, "%s", p.Message)
	if p.WithToleration != "" {
		t.line(1, "with the toleration: %s", p.WithToleration)
	}
	if p.Assumed != "" {
		t.line(1, "assumed: %s", p.Assumed)
	}
	p.messages(&t)
	for _, g := range p.Groups {
		t.line(0, "node group %s: %s, target size %d of %d", g.Name, g.Reason, g.Target, g.Max)
		t.line(1, "%s", g.Message)
		for n := 1; n < len(g.Misfits); n++ { // the message contains the first misfit
			t.line(1, "%s", g.Misfits[n])
		}
		for _, how := range g.Differing {
			t.line(1, "differs: %s", how)
		}
		for n := 1; n < len(g.OnTheirWay); n++ {
			t.line(1, "%s", g.OnTheirWay[n])
		}
		for _, failed := range g.Failed {
			t.line(1, "failed: %s", failed)
		}
		for _, o := range g.Offers {
			t.line(1, "offer of %s: %s", o.Provider, o.Reason)
		}
	}
	var codes []fleet.Code
	for _, g := range p.Groups {
		codes = append(codes, g.codes...)
	}
	t.codes(codes)
	t.notes(p.Notes)
	return t.to(out)
}

// messages prints the pod's node, and the messages of the provider, the scheduler and Cluster Autoscaler about the
// pod.
func (p Pod) messages(t *page) {
	if p.Provider != "" {
		t.line(1, "node %s of instance %s on provider %s", p.Node, p.Instance, p.Provider)
	} else if p.Node != "" && p.Reason != Scheduled {
		t.line(1, "node %s", p.Node)
	}
	for _, words := range []struct{ of, text string }{{"last event on the provider", p.LastEvent},
		{"scheduler", p.Scheduler}, {"Cluster Autoscaler", p.ClusterAutoscaler}} {
		if words.text != "" {
			t.line(1, "%s: %s", words.of, words.text)
		}
	}
}

// Text prints the explanation as text.
func (i Instance) Text(out io.Writer) error {
	var t page
	t.line(0, "instance %s: %s", i.Name, i.state())
	switch {
	case i.Phase == "Released" || i.Group == "":
		t.line(1, "no node group lists it any more")
	case i.Node != "":
		t.line(1, "node %s, in this phase since %s", i.Node, i.Since.Format(time.RFC3339))
	}
	i.requestedFor(&t)
	var codes []fleet.Code
	if i.Failure != nil {
		codes = append(codes, i.Failure.Code)
	}
	for _, r := range i.Records {
		about := ""
		if r.Attempt > 0 && r.Provider != "" {
			about = fmt.Sprintf(" (attempt %d, %s)", r.Attempt, r.Provider)
		}
		kind, _, _ := strings.Cut(r.Workflow, "/")
		t.line(1, "%s  %s%s: %s", r.At.Format("2006-01-02T15:04:05.000Z07:00"), kind, about, r.What)
		if r.Failure != nil {
			t.line(2, "%s: %s", r.Failure.Code, r.Failure.Message)
			codes = append(codes, r.Failure.Code)
		}
		for _, o := range r.Offers {
			t.line(2, "offer of %s: %s", o.Provider, o.Reason)
		}
	}
	if len(i.Records) == 0 {
		t.line(1, "Temporal has no history of it")
	}
	t.codes(codes)
	t.notes(i.Notes)
	return t.to(out)
}

// requestedFor prints the pods for which Cluster Autoscaler requested the instance.
func (i Instance) requestedFor(t *page) {
	for _, trigger := range i.TriggeredBy {
		t.line(1, "requested for pod %s at %s: %s", trigger.Pod, trigger.At.Format(time.RFC3339), trigger.Message)
	}
	if i.MoreTriggers > 0 {
		t.line(1, "and for %d more pods", i.MoreTriggers)
	}
}

// Pods contains the explanations for the pods of a file.
type Pods []Pod

// Text prints the explanations as text.
func (p Pods) Text(out io.Writer) error {
	for n, pod := range p {
		if n > 0 {
			if _, err := io.WriteString(out, "\n"); err != nil {
				return err
			}
		}
		if err := pod.Text(out); err != nil {
			return err
		}
	}
	return nil
}
