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
	// Wide reports whether to print additional columns, and to print texts in full.
	Wide bool
	// Width is the number of characters in a line of the terminal. It is 0 for files and pipes: their lines are not
	// limited.
	Width int
	// Now is the time from which ages are computed.
	Now time.Time
}

// StyleFor returns the style for tables that are printed to out. Its field Now is the present time.
func StyleFor(out io.Writer) Style {
	style := Style{Now: time.Now()}
	if f, ok := out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil { //nolint:gosec // a descriptor fits
			style.Width = columns
		}
	}
	return style
}

// whyWidth is the maximum length of a text in a table on a terminal, in characters.
const whyWidth = 72

// Table prints the rows below a header, in aligned columns. If the terminal is too narrow, Table omits columns that
// are named in drop, in the order of drop, and wraps the text of the last column.
func (s Style) Table(out io.Writer, header []string, rows [][]string, drop ...string) error {
	rows = cleaned(header, rows)
	if s.Wide || s.Width == 0 {
		return aligned(out, rows)
	}
	return narrowed(out, s.Width, rows, drop)
}

// Table prints the rows below a header, in aligned columns. It does not limit their width.
func Table(out io.Writer, header []string, rows [][]string) error {
	return Style{}.Table(out, header, rows)
}

// cleaned returns the header and the rows in one list. It converts each cell to one line, and replaces an empty cell
// by None.
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

// Rows calls the function row for each item, and returns the resulting rows.
func Rows[T any](items []T, row func(item T) []string) (rows [][]string) {
	for _, item := range items {
		rows = append(rows, row(item))
	}
	return rows
}

// Cut shortens a text to whyWidth if the output is a terminal and Wide is false.
func (s Style) Cut(text string) string {
	if s.Wide || s.Width == 0 {
		return text
	}
	return shorten.To(text, whyWidth)
}

// Age returns the time since t as a text, in the form that kubectl uses.
func (s Style) Age(t time.Time) string {
	if t.IsZero() {
		return None
	}
	return duration.HumanDuration(max(0, s.Now.Sub(t)))
}

// None is printed in an empty cell, so that a script can split lines at spaces.
const None = "-"
