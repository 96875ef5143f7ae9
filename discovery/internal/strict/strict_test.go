package strict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/internal/strict"
)

type inner struct {
	Name string `json:"name"`
}

type outer struct {
	inner
	N      int                 `json:"num"`
	F      float64             `json:"fraction"`
	B      bool                `json:"flag"`
	P      *int64              `json:"p"`
	T      *time.Time          `json:"t"`
	Ref    *inner              `json:"ref"`
	List   []inner             `json:"list"`
	Labels map[string]string   `json:"labels"`
	Amount corev1.ResourceList `json:"amount"`
}

func TestDecodeReadsYAMLAndJSON(t *testing.T) {
	want := outer{inner: inner{Name: "x"}, N: 3, List: []inner{{Name: "a"}, {Name: "b"}}, Labels: map[string]string{"k": "v"}}
	for _, doc := range []string{
		"name: x\nnum: 3\nlist: [{name: a}, {name: b}]\nlabels: {k: v}\np:\n",
		`{"name":"x","num":3,"list":[{"name":"a"},{"name":"b"}],"labels":{"k":"v"}}`,
	} {
		var got outer
		require.Empty(t, strict.Decode([]byte(doc), &got))
		require.Equal(t, want, got)
	}
}

func TestDecodeKeepsTimesAndQuantities(t *testing.T) {
	var got outer
	require.Empty(t, strict.Decode([]byte("t: 2027-01-01T00:00:00Z\np: 60\namount: {cpu: 4, memory: 8Gi, nvidia.com/gpu: '1'}\n"), &got))
	require.Equal(t, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), got.T.UTC())
	require.EqualValues(t, 60, *got.P)
	require.Equal(t, "4", got.Amount.Cpu().String())
	require.Equal(t, "8Gi", got.Amount.Memory().String())
	gpu := got.Amount["nvidia.com/gpu"]
	require.EqualValues(t, 1, gpu.Value())
}

func TestDecodeReportsEveryFaultWithItsPath(t *testing.T) {
	const doc = `
num: many
fraction: [1]
flag: 7
t: tomorrow
ref: token-of-somebody
extra: 1
list:
- name: {a: b}
- nmae: x
- 4
labels: [a]
amount: {cpu: lots, nvidia.com/gpu: half, memory: 1Gi}
`
	var got outer
	faults := strict.Decode([]byte(doc), &got)
	paths := map[string]string{}
	for _, f := range faults {
		paths[f.Path] = f.Message
	}
	require.Equal(t, `must be a whole number, is "many"`, paths["num"])
	require.Equal(t, "must be a number, is a list", paths["fraction"])
	require.Equal(t, "must be true or false, is 7", paths["flag"])
	require.Contains(t, paths["t"], `cannot read "tomorrow"`)
	require.Equal(t, "must be a mapping, is a string", paths["ref"], "a string's content is not shown")
	require.Contains(t, paths["extra"], "unknown key; known here: amount, flag, fraction,")
	require.Equal(t, "must be a string, is a mapping", paths["list[0].name"])
	require.Contains(t, paths["list[1].nmae"], "unknown key")
	require.Equal(t, "must be a mapping, is 4", paths["list[2]"])
	require.Equal(t, "must be a mapping, is a list", paths["labels"])
	require.Contains(t, paths["amount.cpu"], `cannot read "lots"`)
	require.Contains(t, paths[`amount["nvidia.com/gpu"]`], `cannot read "half"`)
	require.Len(t, faults, 12)
	require.Contains(t, got.Amount, corev1.ResourceMemory)
	require.NotContains(t, got.Amount, corev1.ResourceCPU)
}

func TestDecodeRefusesBrokenDocuments(t *testing.T) {
	for doc, want := range map[string]string{
		"":                    "empty",
		"# nothing\n":         "empty",
		"a: b: c":             "mapping values are not allowed",
		"num: 1\nnum: 2":      `key "num" already set`,
		"- 1":                 "must be a mapping, is a list",
		"{":                   "line 1",
		"list: [{name: 'a'}]": "",
	} {
		faults := strict.Decode([]byte(doc), &outer{})
		if want == "" {
			require.Empty(t, faults, doc)
			continue
		}
		require.ErrorContains(t, faults, want, doc)
	}
}

// The YAML library reads the first document and says nothing of the rest.
func TestDecodeRefusesWhatFollowsTheDocument(t *testing.T) {
	for _, doc := range []string{"num: 1\n---\nflag: true\n", "num: 1\n...\nflag: true\n", "{num: 1}\nflag: true\n", "{num: 1}\n{"} {
		require.ErrorContains(t, strict.Decode([]byte(doc), &outer{}), "more than one document", doc)
	}
	for _, doc := range []string{"---\nnum: 1\n", "# a\n---\nnum: 1\n...\n", "num: 1\n---\n# nothing\n", "{\"num\": 1}\n\n"} {
		require.Empty(t, strict.Decode([]byte(doc), &outer{}), doc)
	}
}

// Aliases of one long text make GBs of a file of one MB: one such Secret would kill the worker.
func TestDecodeRefusesAliasesThatSwell(t *testing.T) {
	document := []byte("name: &a " + strings.Repeat("a", 20_000) + "\nlabels: {b: [" + strings.Repeat("*a,", 2_000) + "]}\n")
	require.ErrorContains(t, strict.Decode(document, &outer{}), "its aliases make more than 16 MiB of it")
	var got outer
	require.Empty(t, strict.Decode([]byte("name: &a x\nlabels: {b: *a, c: *a}\n"), &got))
	require.Equal(t, "x", got.Labels["c"])
}

// JSON has no such numbers, and does not say where they are.
func TestDecodeSaysWhereANumberIsNone(t *testing.T) {
	faults := strict.Decode([]byte("fraction: .nan\nlist: [{name: a}, {name: -.inf}]\nlabels: {example.com/a: .inf}\n"), &outer{})
	require.EqualError(t, faults, "fraction: NaN is no number that can be used here\n"+
		"labels[\"example.com/a\"]: +Inf is no number that can be used here\n"+
		"list[1].name: -Inf is no number that can be used here")
}

// YAML 1.1 does not know this escape, which many JSON encoders write.
func TestDecodeReadsJSONWithEscapedSlashes(t *testing.T) {
	var got outer
	require.Empty(t, strict.Decode([]byte(`{"name":"a\\\/b\\/c","amount":{"nvidia.com\/gpu":"1"}}`), &got))
	require.Equal(t, `a\/b\/c`, got.Name)
	require.Contains(t, got.Amount, corev1.ResourceName("nvidia.com/gpu"))
}

// Computing with such an amount takes seconds to minutes, and hundreds of MB.
func TestDecodeRefusesAmountsOfManyDigits(t *testing.T) {
	for _, amount := range []string{"1e300000", `"1E-300000"`, `" 1e300000"`, `"1234567890123456789012e300000"`, `"` + strings.Repeat("9", 60000) + `"`} {
		faults := strict.Decode([]byte(`{"amount":{"cpu":`+amount+`}}`), &outer{})
		require.Len(t, faults, 1, amount)
		require.Equal(t, "amount.cpu", faults[0].Path)
		require.Contains(t, faults[0].Message, "cannot read")
	}
}

// Errors enter histories, whose payloads are bounded.
func TestFaultsSayNotTooMuch(t *testing.T) {
	var faults strict.Faults
	for range 100 {
		faults.Add("labels.a", "the value %q is too long", strings.Repeat("é", 100_000))
	}
	require.Less(t, len(faults.Error()), 40_000)
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add([]byte("num: 3\nlist: [{name: a}]\namount: {cpu: 1}"))
	f.Add([]byte(`{"t":"x","p":null,"ref":{"name":null},"labels":{"":null}}`))
	f.Fuzz(func(_ *testing.T, doc []byte) { _ = strict.Decode(doc, &outer{}) })
}
