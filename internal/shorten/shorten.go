// Package shorten shortens and cleans texts that people read. Other parties have written parts of these texts.
package shorten

import (
	"regexp"
	"strings"
	"unicode"
)

// OneLine returns a text of another party as one line without tokens. It writes a space instead of each character that
// controls a terminal, breaks a line or changes the direction of the text.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if controls(r) {
			return ' '
		}
		return r
	}, withoutTokens(text))
}

// tokens matches JSON Web Tokens (which Kubernetes and Temporal Cloud issue), tokens of AWS and Google, and the token
// in an Authorization header.
var tokens = regexp.MustCompile(`eyJ[\w-]{4,}\.[\w-]{4,}\.[\w-]*|k8s-aws-v1\.[\w-]{8,}|ya29\.[\w-]{8,}|` +
	`(?i:authorization)["':\[ ]+(?i:bearer) +[\w.~+/-]+=*`)

// withoutTokens replaces the tokens in a text.
func withoutTokens(text string) string { return tokens.ReplaceAllLiteralString(text, "(a token)") }

// Lines cleans a text as OneLine does, but keeps the line feeds and tabs of the text.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && controls(r) {
			return ' '
		}
		return r
	}, withoutTokens(text))
}

// controls reports whether a terminal interprets the character: a control character, a line or paragraph separator, or
// a format character such as a bidirectional mark.
func controls(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// To returns the text if it has at most the given number of characters. Otherwise it returns the beginning of the
// text and an ellipsis. The time that To needs does not depend on the length of the text.
func To(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if r := []rune(text[:min(len(text), 4*(most+1))]); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// Words returns a text of another party as one line with at most the given number of characters: it applies OneLine
// and To. It first cuts a very long text, so that the time it needs does not depend on the length of the text.
func Words(text string, most int) string { return To(OneLine(To(text, 4*most)), most) }
