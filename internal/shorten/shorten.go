// Package shorten shortens texts for people.
package shorten

import (
	"strings"
	"unicode"
)

// OneLine keeps a text of others from breaking a table or the terminal.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
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
