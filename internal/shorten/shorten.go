// Package shorten shortens texts for people.
package shorten

import (
	"regexp"
	"strings"
	"unicode"
)

// OneLine removes tokens from a text of another party, and replaces by a space each character that controls a terminal,
// breaks a line, or changes the direction of the text.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if controls(r) {
			return ' '
		}
		return r
	}, withoutTokens(text))
}

// tokens are JSON Web Tokens, as Kubernetes and Temporal Cloud issue them, tokens of AWS and Google, and tokens in a
// quoted header of HTTP.
var tokens = regexp.MustCompile(`eyJ[\w-]{4,}\.[\w-]{4,}\.[\w-]*|k8s-aws-v1\.[\w-]{8,}|ya29\.[\w-]{8,}|` +
	`(?i:authorization)["':\[ ]+(?i:bearer) +[\w.~+/-]+=*`)

// withoutTokens replaces the tokens in a text.
func withoutTokens(text string) string { return tokens.ReplaceAllLiteralString(text, "(a token)") }

// Lines is OneLine for a text of several lines, whose line feeds and tabs stay.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && controls(r) {
			return ' '
		}
		return r
	}, withoutTokens(text))
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

// Words is OneLine and To for a text of another party. It cuts the text before it reads it, so that a long text costs
// little.
func Words(text string, most int) string { return To(OneLine(To(text, 4*most)), most) }
