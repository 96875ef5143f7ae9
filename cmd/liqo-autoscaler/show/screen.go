package show

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Screen is the live view of `status --watch` on a terminal.
type Screen struct {
	Title string
	// Problem is why what is shown is not up to date; "" when it is.
	Problem string
	Status  Status
	Offers  Offers
	Changes []Change // oldest first
}

// Draw prints at most height lines of at most width characters. If there is no room for all rows, each table gets its
// share: the changes their last rows, the others their first.
func (s Screen) Draw(out io.Writer, look Style, width, height int) error {
	tables, err := s.tables(look)
	if err != nil {
		return err
	}
	lines := []string{s.Title}
	if s.Problem != "" {
		lines = append(lines, s.Problem)
	}
	want := make([]int, len(tables))
	for n, t := range tables {
		want[n] = len(t) - 1
	}
	last := len(tables) - 1
	for n, rows := range share(height-len(lines)-2*len(tables), want) {
		t := tables[n]
		lines = append(lines, "", t[0])
		switch all := t[1:]; {
		case n == last:
			lines = append(lines, all[len(all)-rows:]...)
		case rows < len(all) && rows > 0:
			lines = append(append(lines, all[:rows-1]...), fmt.Sprintf("and %d more", len(all)-rows+1))
		default:
			lines = append(lines, all[:rows]...)
		}
	}
	lines = lines[:min(len(lines), height)]
	for n := range lines {
		lines[n] = shorten.To(shorten.OneLine(lines[n]), width)
	}
	_, err = io.WriteString(out, strings.Join(lines, "\n"))
	return err
}

// BusyFirst puts the instances that are Ready, with nothing the matter, behind the others.
func (s *Status) BusyFirst() {
	place := func(i Instance) int {
		if i.Phase == fleet.Ready && i.Why() == "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.Instances, func(a, b Instance) int { return cmp.Compare(place(a), place(b)) })
}

// tables are the tables' lines, each with its header; the last one is that of the changes.
func (s Screen) tables(look Style) (tables [][]string, err error) {
	look.Narrow = !look.Wide
	var text bytes.Buffer
	for _, section := range []func(io.Writer, Style) error{s.Status.Table, s.Offers.Table, s.changeTable} {
		if err := section(&text, look); err != nil {
			return nil, err
		}
		text.WriteByte('\n')
	}
	for _, t := range strings.Split(strings.TrimSpace(text.String()), "\n\n") {
		tables = append(tables, strings.Split(t, "\n"))
	}
	return tables, nil
}

func (s Screen) changeTable(out io.Writer, look Style) error {
	header := []string{"CHANGED AT", "INSTANCE", "PHASE", "PROVIDER", "ATTEMPT", "WHY"}
	return table(out, header, rowsOf(s.Changes, func(c Change) []string {
		return []string{c.At.In(look.Now.Location()).Format("15:04:05"), c.what(), string(c.Phase), c.Provider, c.attempt(),
			look.cut(c.why())}
	}))
}

// share deals out rows, one to each who wants more, in turn.
func share(rows int, want []int) []int {
	got := make([]int, len(want))
	for dealt := true; dealt; {
		dealt = false
		for n := range want {
			if rows > 0 && got[n] < want[n] {
				got[n]++
				rows--
				dealt = true
			}
		}
	}
	return got
}
