package output

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Style configures how tables are printed.
type Style struct {
	// Wide prints additional columns and does not cut texts.
	Wide bool
	// Width is the number of characters in a line of the terminal; 0 for files and pipes, whose lines are not limited.
	Width int
	// Now is the time from which ages are computed.
	Now time.Time
}

// StyleFor returns the style for tables that are printed to out now.
func StyleFor(out io.Writer) Style {
	style := Style{Now: time.Now()}
	if f, ok := out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil { //nolint:gosec // a descriptor fits
			style.Width = columns
		}
	}
	return style
}

// whyWidth is the maximum length of a text on a terminal, in characters.
const whyWidth = 72

// Table prints the rows below a header, in aligned columns. If the terminal is too narrow, Table omits the columns in
// drop, beginning with the first of drop, and wraps the text of the last column.
func (s Style) Table(out io.Writer, header []string, rows [][]string, drop ...string) error {
	rows = cleaned(header, rows)
	if s.Wide || s.Width == 0 {
		return aligned(out, rows)
	}
	return narrowed(out, s.Width, rows, drop)
}

// Table prints the rows below a header, in aligned columns of any width.
func Table(out io.Writer, header []string, rows [][]string) error {
	return Style{}.Table(out, header, rows)
}

// cleaned returns the rows with the header as the first row. It reduces each cell to one line, and replaces an empty
// cell by None.
func cleaned(header []string, rows [][]string) [][]string {
	all := slices.Concat([][]string{header}, rows)
	for _, row := range all {
		for i := range row {
			row[i] = cmp.Or(shorten.OneLine(row[i]), None)
		}
	}
	return all
}

func aligned(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, columnGap, ' ', 0)
	for _, row := range rows {
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

// Cut shortens a text to whyWidth on a terminal, unless the table is wide.
func (s Style) Cut(text string) string {
	if s.Wide || s.Width == 0 {
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

// None is the content of empty cells, so that a script can split lines at spaces.
const None = "-"
