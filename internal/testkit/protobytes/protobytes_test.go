package protobytes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessageIsComparedWithItsText(t *testing.T) {
	named := map[string][]byte{"x": {1, 2}}
	fields, err := Parse(`1: -1 2: "a b" 3: {1: 0.5 4: {}} 3: {1: 2.0} 5: @x`, named)
	require.NoError(t, err)
	raw := Append(nil, fields)
	for text, want := range map[string]string{
		`1: -1 2: "a b" 3: {1: 0.5} 3: {1: finite} 5: @x !6:`: "",
		``:               "",
		`5: @x 1: -1`:    "",
		`1: 1`:           "the field is 18446744073709551615",
		`2: "a"`:         `the field is "a b"`,
		`!1:`:            "the field is present",
		`6: 1`:           "the field is absent",
		`1: -1 1: -1`:    "fewer times",
		`3: {1: 0.7}`:    "the field is 46",
		`3: {4: {1: 1}}`: "the field is absent",
		`2: 1`:           "wire type 2",
	} {
		fields, err := Parse(text, named)
		require.NoError(t, err, text)
		if err := Match(fields, raw); want == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, want, text)
		}
	}
	require.Error(t, Match(nil, []byte{0xff}))
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`1: {`: "not closed", `1: 2 }`: "unexpected text", `x: 1`: "not a field number",
		`1: @y`: "no bytes are named", `1: y`: "invalid",
	} {
		_, err := Parse(text, nil)
		require.ErrorContains(t, err, want, text)
	}
}
