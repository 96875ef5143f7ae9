package testkit

import "slices"

// Span is a span of a trace, by its ids; Parent is "" for a root.
type Span struct{ Trace, ID, Parent, Name string }

// Lineages returns the names of the spans, sorted, each after the names of its ancestors in the same trace: "root >
// child". A parent that is missing in spans is "?".
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
