package shorten

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTo(t *testing.T) {
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
