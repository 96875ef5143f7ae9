package shorten

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTextIsShortenedToALength(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"four":                    "four",
		"fives":                   "fiv…",
		"äöüß":                    "äöüß",
		"äöüßé":                   "äöü…",
		"😀😀😀😀":                    "😀😀😀😀",
		"😀😀😀😀😀":                   "😀😀😀…",
		strings.Repeat("😀", 1000): "😀😀😀…",
	} {
		require.Equal(t, want, To(text, 4))
	}
	require.Equal(t, 300, utf8.RuneCountInString(To(strings.Repeat("é", 1<<20), 300)))
}

// A text of a provider is printed on a terminal without its escape sequences (OSC 52, for example, writes into the
// clipboard) and without its bidirectional marks.
func TestTextOfProvidersControlsNoTerminal(t *testing.T) {
	hostile := "no \x1b[31m\x1b]52;c;cm0=\a \u202Egnp.exe\u2028\u009b2J\ttab\nline\r"
	require.Equal(t, "no  [31m ]52;c;cm0=   gnp.exe  2J tab line ", OneLine(hostile))
	require.Equal(t, "no  [31m ]52;c;cm0=   gnp.exe  2J\ttab\nline ", Lines(hostile))
	require.Equal(t, "größer 😀", OneLine("größer 😀"))
}

// A provider quotes our token in its answer. The token is not printed.
func TestTokensAreNotPrinted(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl-_"
	for text, want := range map[string]string{
		"invalid token " + token + ", sorry":            "invalid token (a token), sorry",
		"sent Authorization: Bearer s3cret-of-somebody": "sent (a token)",
		"send a bearer token":                           "send a bearer token",
		"the bearer of news":                            "the bearer of news",
		"send Authorization: Bearer <token>":            "send Authorization: Bearer <token>",
		"eyJ is no token":                               "eyJ is no token",
	} {
		require.Equal(t, want, OneLine(text))
		require.Equal(t, want, Lines(text))
	}
}
