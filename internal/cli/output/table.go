package output

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Style configures how tables are printed.
type Style struct {
	// Wide adds columns and does not cut texts.
	Wide bool
	// Now is the time to which ages are counted.
	Now time.Time
}

// whyWidth is the length to which texts are cut without Wide, in characters.
const whyWidth = 72

// Table prints rows under a header, in aligned columns.
func Table(out io.Writer, header []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		for i := range row {
			row[i] = cmp.Or(shorten.OneLine(row[i]), None)
		}
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Rows returns one row for each item.
func Rows[T any](items []T, row func(item T) []string) (rows [][]string) {
	for _, item := range items {
		rows = append(rows, row(item))
	}
	return rows
}

// Cut shortens a text to the width of a column, unless the table is wide.
func (s Style) Cut(text string) string {
	if s.Wide {
		return text
	}
	return shorten.To(text, whyWidth)
}

// Age renders the time since t as kubectl does.
func (s Style) Age(t time.Time) string {
	if t.IsZero() {
		return None
	}
	return duration.HumanDuration(max(0, s.Now.Sub(t)))
}

// None fills empty cells, so that spaces always separate columns.
const None = "-"
