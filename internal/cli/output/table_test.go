package output_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
)

// printed renders a table of the given width. It contains a text of 90 characters.
func printed(t *testing.T, width int) string {
	t.Helper()
	style := output.Style{Width: width}
	why := strings.TrimSpace(strings.Repeat("because ", 12)) + "END"
	var out bytes.Buffer
	require.NoError(t, style.Table(&out, []string{"NAME", "SPEC", "MIN", "WHY"},
		[][]string{{"standard-toxgz8-2", "0a1b2c3d4e5f", "0", why}, {"b", "x", "1", ""}}, "SPEC", "MIN"))
	return out.String()
}

// If a terminal is too narrow, the table omits its least important columns. It never omits the column WHY, which
// contains a text.
func TestNarrowTerminalKeepsTheText(t *testing.T) {
	for width, want := range map[int]struct {
		columns []string
		lines   int
	}{
		0:   {[]string{"NAME", "SPEC", "MIN", "WHY"}, 3},
		200: {[]string{"NAME", "SPEC", "MIN", "WHY"}, 3},
		80:  {[]string{"NAME", "SPEC", "MIN", "WHY"}, 5},
		60:  {[]string{"NAME", "MIN", "WHY"}, 5},
		48:  {[]string{"NAME", "WHY"}, 6},
		30:  {[]string{"NAME"}, 7}, // the text is in the line below the row
	} {
		text := printed(t, width)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		require.Equal(t, want.columns, strings.Fields(lines[0]), "%d:\n%s", width, text)
		require.Len(t, lines, want.lines, "%d:\n%s", width, text)
		require.Equal(t, 12, strings.Count(text, "because"), text)
		require.Contains(t, text, "END", text)
		for _, line := range lines {
			require.Equal(t, strings.TrimRight(line, " "), line)
			if width > 0 {
				require.LessOrEqual(t, utf8.RuneCountInString(line), width, text)
			}
		}
	}
}

// A word that is longer than its column continues on the next line. A table with the option Wide may be wider than
// the terminal, so it breaks no word.
func TestLongWordsAreBroken(t *testing.T) {
	var out bytes.Buffer
	word := strings.Repeat("x", 70)
	require.NoError(t, output.Style{Width: 40}.Table(&out, []string{"A", "WHY"}, [][]string{{"a", word}}))
	require.Equal(t, "A   WHY\na   "+word[:36]+"\n    "+word[36:]+"\n", out.String())
	out.Reset()
	require.NoError(t, output.Style{Width: 40, Wide: true}.Table(&out, []string{"A", "WHY"}, [][]string{{"a", word}}, "A"))
	require.Equal(t, "A   WHY\na   "+word+"\n", out.String())
}

// Texts are shortened only on a terminal. A program that reads a table gets whole texts.
func TestOnlyATerminalShortensTexts(t *testing.T) {
	long := strings.Repeat("long ", 40)
	require.Equal(t, long, output.Style{}.Cut(long))
	require.Equal(t, long, output.Style{Wide: true, Width: 80}.Cut(long))
	require.Equal(t, 72, utf8.RuneCountInString(output.Style{Width: 80}.Cut(long)))
	var out bytes.Buffer
	require.Zero(t, output.StyleFor(&out).Width)
	require.NotZero(t, output.StyleFor(&out).Now)
}
