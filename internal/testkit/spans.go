package testkit

import "slices"

// Span is a span of a trace. Trace, ID and Parent are ids; Parent is "" for a root.
type Span struct{ Trace, ID, Parent, Name string }

// Lineages returns a sorted list with one line for each span. The line contains the names of the span's ancestors in
// the same trace and the span's own name, such as "root > child". An ancestor that is not in spans appears as "?".
func Lineages(spans []Span) (lines []string) {
	type key struct{ trace, id string }
	byID := map[key]Span{}
	for _, s := range spans {
		byID[key{s.Trace, s.ID}] = s
	}
	for _, s := range spans {
		line := s.Name
		for s.Parent != "" {
			parent, ok := byID[key{s.Trace, s.Parent}]
			if !ok {
				parent.Name = "?"
			}
			s, line = parent, parent.Name+" > "+line
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
