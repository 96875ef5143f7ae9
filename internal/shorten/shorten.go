// Package shorten shortens texts for people.
package shorten

import (
	"strings"
	"unicode"
)

// OneLine returns a text of another party without characters that control a terminal, break a line, or change the
// direction of the text: each becomes a space.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if controls(r) {
			return ' '
		}
		return r
	}, text)
}

// Lines is OneLine for a text of several lines, whose line feeds and tabs stay.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && controls(r) {
			return ' '
		}
		return r
	}, text)
}

// controls reports whether a terminal acts on the character: a control character, a separator of lines, or a format
// character, which includes the bidirectional marks.
func controls(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// To is the text, or its beginning and an ellipsis: at most that many characters. Of a text of any length it reads no
// more than it needs.
func To(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if r := []rune(text[:min(len(text), 4*(most+1))]); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
