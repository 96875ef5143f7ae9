package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Style is how tables are printed.
type Style struct {
	// Wide adds columns and does not cut texts.
	Wide bool
	// Now is what ages are counted to.
	Now time.Time
}

// whyWidth is where texts are cut when not Wide, in characters.
const whyWidth = 72

// table prints rows under a header, in aligned columns.
func table(out io.Writer, header []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		for i := range row {
			row[i] = cmp.Or(shorten.OneLine(row[i]), none)
		}
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// rowsOf are a row for each item.
func rowsOf[T any](items []T, row func(item T) []string) (rows [][]string) {
	for _, item := range items {
		rows = append(rows, row(item))
	}
	return rows
}

func (l Style) cut(text string) string {
	if l.Wide {
		return text
	}
	return shorten.To(text, whyWidth)
}

// age is the time since t as kubectl prints it.
func (l Style) age(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return duration.HumanDuration(max(0, l.Now.Sub(t)))
}

// none fills cells that have nothing to say, so that columns can be told apart by spaces.
const none = "-"

// shown are the resources in tables, when not Wide.
var shown = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Resources is all of a list on one line.
func Resources(list corev1.ResourceList) string { return Style{Wide: true}.resources(list) }

// resources is a short text of a list: cpu=8,memory=16Gi, then what is special about it.
func (l Style) resources(list corev1.ResourceList) string {
	var parts []string
	seen := map[corev1.ResourceName]bool{}
	add := func(name corev1.ResourceName) {
		if q, ok := list[name]; ok && !seen[name] {
			seen[name] = true
			parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
		}
	}
	for _, name := range shown {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		plain := name == corev1.ResourcePods || name == corev1.ResourceEphemeralStorage
		if l.Wide || !plain {
			add(name)
		}
	}
	return cmp.Or(strings.Join(parts, ","), none)
}
