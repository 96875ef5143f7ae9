package output

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	columnGap = 3  // spaces between columns
	leastText = 24 // minimum width of the last column; if less is left, the column's text is printed below the row
	textBelow = 4  // indentation of a text below its row
)

// narrowed prints the rows in lines that have at most width characters, if this is possible. The first row is the
// header.
func narrowed(out io.Writer, width int, rows [][]string, drop []string) error {
	rows = dropped(rows, width, drop)
	last := len(rows[0]) - 1
	room, text := width-fixed(rows), widest(rows, last)
	if room >= text || text <= leastText {
		return aligned(out, rows)
	}
	below := room < leastText
	if below {
		room = width - textBelow
	}
	for n, row := range rows {
		line := padded(rows, row)
		indent, lines := strings.Repeat(" ", utf8.RuneCountInString(line)), wrapped(row[last], max(room, 1))
		if below {
			indent, lines = strings.Repeat(" ", textBelow), append([]string{""}, lines...)
		}
		if below && (n == 0 || row[last] == None) {
			lines = lines[:1]
		}
		text := strings.TrimRight(line+lines[0], " ") + "\n"
		for _, more := range lines[1:] {
			text += indent + more + "\n"
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

// padded returns a line with all cells of the row except the last. Each cell is padded to the width of its column.
func padded(rows [][]string, row []string) (line string) {
	for i := range len(rows[0]) - 1 {
		line += row[i] + strings.Repeat(" ", widest(rows, i)+columnGap-utf8.RuneCountInString(row[i]))
	}
	return line
}

// dropped removes the columns that are named in drop, one after another. It stops when the table fits into the width.
func dropped(rows [][]string, width int, drop []string) [][]string {
	for _, name := range drop {
		if n := slices.Index(rows[0], name); n >= 0 && fixed(rows)+min(leastText, widest(rows, len(rows[0])-1)) > width {
			rows = without(rows, n)
		}
	}
	return rows
}

// fixed returns the total width of all columns except the last, including the gaps between columns.
func fixed(rows [][]string) (width int) {
	for i := range len(rows[0]) - 1 {
		width += widest(rows, i) + columnGap
	}
	return width
}

// widest returns the width of a column: the width of its widest cell.
func widest(rows [][]string, column int) (width int) {
	for _, row := range rows {
		width = max(width, utf8.RuneCountInString(row[column]))
	}
	return width
}

// without returns the rows without the given column.
func without(rows [][]string, column int) (left [][]string) {
	for _, row := range rows {
		left = append(left, slices.Delete(slices.Clone(row), column, column+1))
	}
	return left
}

// wrapped breaks a text into lines. It breaks the text between words, and breaks a word only if the word is longer
// than a line.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		runes := []rune(word)
		for ; len(runes) > width; runes = runes[width:] {
			lines = append(lines, string(runes[:width]))
		}
		line = string(runes)
	}
	return append(lines, line)
}
