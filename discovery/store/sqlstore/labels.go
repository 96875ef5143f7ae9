package sqlstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// searchable returns the labels as a text, in which a query can search for a label: ",key=value,key=value,".
func searchable(set map[string]string) string {
	var text strings.Builder
	text.WriteByte(',')
	for _, key := range slices.Sorted(maps.Keys(set)) {
		text.WriteString(key + "=" + set[key] + ",")
	}
	return text.String()
}

// narrowed returns an SQL condition for the equality requirements of the selector. It appends the arguments of the
// condition to args. The condition matches every offer that the selector matches. It may also match other offers,
// because in a LIKE pattern "_" matches any character, and SQLite's LIKE ignores the case.
func narrowed(selector labels.Selector, args ...any) (string, []any) {
	if selector == nil {
		return "", args
	}
	var narrow strings.Builder
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			continue
		}
		narrow.WriteString(" AND (labels IS NULL")
		for _, value := range r.ValuesUnsorted() {
			args = append(args, "%,"+r.Key()+"="+value+",%")
			fmt.Fprintf(&narrow, " OR labels LIKE $%d", len(args))
		}
		narrow.WriteString(")")
	}
	return narrow.String(), args
}
