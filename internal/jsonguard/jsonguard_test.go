package jsonguard

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func guarded(t *testing.T, document string, limits Limits) (string, error) {
	t.Helper()
	whole, err := io.ReadAll(New(strings.NewReader(document), limits))
	slowly, slow := io.ReadAll(New(iotest.OneByteReader(strings.NewReader(document)), limits))
	require.ErrorIs(t, slow, err)
	if err == nil {
		require.Equal(t, string(whole), string(slowly), "wherever a read ends")
	}
	return string(whole), err
}

func TestOrdinaryValuesStay(t *testing.T) {
	for _, document := range []string{
		`{}`, `[]`, `null`, `"x"`, "{}\n{}\n", `{"a":[1,2.5e3,-4],"b":{"c":"}],\"{["}}`,
		`{"status":{"resources":{"cpu":"1500m","memory":"64Gi","x":"1e3","y":1e9,"z":"5E"}}}`,
		`{"metadata":{"labels":{"sha":"1234e567","resources":"1234e567"},"uid":"12e45678-1"}}`,
		`{"resources":{"name":"model-12e4567"}}`, `{"items":[{},{}]}`, `not JSON at all ]]}}`,
	} {
		got, err := guarded(t, document, Limits{Elements: 4, Fields: 8})
		require.NoError(t, err, document)
		require.Equal(t, document, got)
	}
}

func TestManySmallValuesAreRefused(t *testing.T) {
	for name, document := range map[string]string{
		"elements": `{"items":[{},{},{},{},{}]}`,
		"numbers":  `[1,2,3,4,5]`,
		"texts":    `["","","","",""]`,
		"lists":    `[[],[],[],[],[]]`,
		"fields":   `{"a":1,"b":"","c":{},"d":[],"e":1,"f":1,"g":1,"h":1,"i":1}`,
		"depth":    strings.Repeat("[", maxDepth+1),
	} {
		limits := Limits{Elements: 4, Fields: 8}
		if name == "depth" {
			limits = Limits{}
		}
		_, err := guarded(t, document, limits)
		require.ErrorIs(t, err, ErrTooMuch, name)
		if name != "depth" {
			_, err = guarded(t, document, Limits{Elements: 5, Fields: 9})
			require.NoError(t, err, name)
		}
	}
}

// Every quantity is shortened to few digits and an exponent of at most two digits, because computations with a
// quantity use all of its digits.
func TestHugeQuantitiesAreShortened(t *testing.T) {
	for _, amount := range []string{`"1e100000000"`, `1e100000000`, `"1E-100000000"`, `" 1e+100000000 "`,
		`"1.0000000000000000000000001e100000000"`, `"-1e2147483647"`, "\"\u00a01e100000000\"",
		`"` + strings.Repeat("9", 1<<20) + `Ki"`, strings.Repeat("9", 1<<20), `"` + strings.Repeat("9", 60) + `e1000000"`,
		`"` + strings.Repeat("9", 62) + `E+1000000"`} {
		for _, document := range []string{
			`{"resources":{"cpu":` + amount + `}}`, `{"resources" : {"limits":{"cpu" : ` + amount + ` }}}`,
			`{"items":[{"x":{"cap\u0061city":{"cpu":` + amount + `}}}]}`, `{"resources":{"a":"x","cpu":` + amount + `}}`,
		} {
			got, err := guarded(t, document, Limits{})
			require.NoError(t, err)
			require.Len(t, got, len(document))
			var all any
			require.NoError(t, json.Unmarshal([]byte(got), &all), got)
			start, end := strings.LastIndex(got, `:`)+1, strings.Index(got, "}")
			require.Less(t, len(strings.Join(strings.Fields(got[start:end]), "")), 70)
			require.NotRegexp(t, `[eE][+-]?[0-9]{3}`, got)
			var list corev1.ResourceList
			require.NoError(t, json.Unmarshal([]byte(`{"cpu":`+got[start:end]+`}`), &list), got)
			cpu := list[corev1.ResourceCPU]
			cpu.Cmp(corev1.ResourceList{}[corev1.ResourceCPU])
		}
	}
}
