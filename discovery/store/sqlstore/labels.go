package sqlstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// searchable renders the labels for the column that selectors search: ",key=value,key=value,".
func searchable(set map[string]string) string {
	var text strings.Builder
	text.WriteByte(',')
	for _, key := range slices.Sorted(maps.Keys(set)) {
		text.WriteString(key + "=" + set[key] + ",")
	}
	return text.String()
}

// narrowed returns an SQL condition for the selector's equality requirements, and appends the condition's arguments to
// args. The condition matches every offer that the selector matches. It may match more offers, because "_" matches any
// character and SQLite ignores the case.
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
