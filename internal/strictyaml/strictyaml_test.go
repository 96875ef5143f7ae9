package strictyaml_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
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
	Wait   metav1.Duration     `json:"wait"`
}

func unmarshal(doc string, target any) error {
	_, faults, err := strictyaml.Unmarshal([]byte(doc), target)
	if err != nil {
		return err
	}
	return faults.Locate([]byte(doc)).Err()
}

func TestUnmarshalReadsYAMLAndJSON(t *testing.T) {
	want := outer{inner: inner{Name: "x"}, N: 3, List: []inner{{Name: "a"}, {Name: "b"}},
		Labels: map[string]string{"k": "v"}}
	for _, doc := range []string{
		"name: x\nnum: 3\nlist: [{name: a}, {name: b}]\nlabels: {k: v}\np:\n",
		`{"name":"x","num":3,"list":[{"name":"a"},{"name":"b"}],"labels":{"k":"v"}}`,
		"base: &b {k: v}\nnum: 3\nname: x\nlist: [{name: a}, {name: b}]\nlabels: {<<: *b}\n",
	} {
		var got struct {
			outer
			Base map[string]string `json:"base"`
		}
		require.NoError(t, unmarshal(doc, &got))
		require.Equal(t, want, got.outer)
	}
}

func TestUnmarshalKeepsTimesAndQuantities(t *testing.T) {
	var got outer
	require.NoError(t, unmarshal("t: 2027-01-01T00:00:00Z\np: 60\nwait: 1m30s\n"+
		"amount: {cpu: 4, memory: 8Gi, nvidia.com/gpu: '1'}\n", &got))
	require.Equal(t, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), got.T.UTC())
	require.EqualValues(t, 60, *got.P)
	require.Equal(t, 90*time.Second, got.Wait.Duration)
	require.Equal(t, "4", got.Amount.Cpu().String())
	require.Equal(t, "8Gi", got.Amount.Memory().String())
	gpu := got.Amount["nvidia.com/gpu"]
	require.EqualValues(t, 1, gpu.Value())
}

// All faults are reported together, in the order of the document.
func TestUnmarshalReportsEveryFault(t *testing.T) {
	const doc = `
num: many
fraction: [1]
flag: 7
t: tomorrow
wait: -1s
ref: token-of-somebody
extra: 1
list:
- name: {a: b}
- nmae: x
- 4
-
labels: [a]
num: 2
amount: {cpu: lots, nvidia.com/gpu: half, memory: 1Gi, pods: .nan}
`
	var got outer
	require.EqualError(t, unmarshal(doc, &got), `line 2: num: got "many", want a whole number
line 3: fraction: got a list, want a number
line 4: flag: got 7, want true or false
line 5: t: got "tomorrow", want a time such as 2027-01-31T00:00:00Z
line 6: wait: is -1s: give more than 0, such as 1s, or leave it out for the default
line 7: ref: got text, want a mapping (key: value)
line 8: extra: unknown field: remove it, or use one of amount, flag, fraction, labels, list, name, num, p, ref, t, wait
line 10: list[0].name: got a mapping, want text: put it in quotes
line 11: list[1].nmae: unknown field: remove it, or use one of name
line 12: list[2]: got 4, want a mapping (key: value)
line 13: list[3]: got nothing, want a mapping (key: value)
line 14: labels: got a list, want a mapping (key: value)
line 15: key "num" is given twice: keep one
line 16: amount.cpu: got "lots", want a quantity such as 4, 500m or 8Gi
line 16: amount["nvidia.com/gpu"]: got "half", want a quantity such as 4, 500m or 8Gi
line 16: amount.pods: got NaN, want a finite number`)
	require.Contains(t, got.Amount, corev1.ResourceMemory)
	require.NotContains(t, got.Amount, corev1.ResourceCPU)
}

func TestUnmarshalRefusesBrokenDocuments(t *testing.T) {
	for doc, want := range map[string]string{
		"":                    "the document is empty",
		"# nothing\n":         "the document is empty",
		"a: b: c":             "mapping values are not allowed",
		"num: 1\nnum: 2":      `line 2: key "num" is given twice: keep one`,
		"- 1":                 "got a list, want a mapping (key: value)",
		"token":               `got text, want a mapping (key: value)`,
		"{":                   "not YAML: line 1",
		"a: &a [*a]":          "not YAML: anchor 'a' value contains itself",
		"list: [{name: 'a'}]": "",
	} {
		err := unmarshal(doc, &outer{})
		if want == "" {
			require.NoError(t, err, doc)
			continue
		}
		require.ErrorContains(t, err, want, doc)
	}
}

// A file with several documents is refused, because the YAML library would read the first document and ignore the
// other documents without an error.
func TestUnmarshalRefusesSeveralDocuments(t *testing.T) {
	for _, doc := range []string{"num: 1\n---\nflag: true\n", "num: 1\n...\nflag: true\n", "{num: 1}\nflag: true\n",
		"{num: 1}\n{"} {
		require.ErrorContains(t, unmarshal(doc, &outer{}), "more than one YAML document", doc)
	}
	for _, doc := range []string{"---\nnum: 1\n", "# a\n---\nnum: 1\n...\n", "num: 1\n---\n# nothing\n",
		"{\"num\": 1}\n\n"} {
		require.NoError(t, unmarshal(doc, &outer{}), doc)
	}
}

// A document with aliases of a long text is refused. Aliases can expand a file of one MB to gigabytes, so one such
// Secret would end the worker.
func TestExpandingAliasesAreRefused(t *testing.T) {
	swelling := "name: &a " + strings.Repeat("a", 20_000) + "\nlabels: {b: [" + strings.Repeat("*a,", 2_000) + "]}\n"
	nested := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		nested += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 10))
	}
	for _, doc := range []string{swelling, nested} {
		require.EqualError(t, unmarshal(doc, &outer{}), strictyaml.ErrAliases.Error())
	}
	require.ErrorIs(t, strictyaml.CheckAliases([]byte(swelling)), strictyaml.ErrAliases)

	const few = "name: &a x\nlabels: {b: *a, c: *a}\n"
	var got outer
	require.NoError(t, unmarshal(few, &got))
	require.Equal(t, "x", got.Labels["c"])
	for _, doc := range []string{few, "", "a: [", "a: 1\n---\nb: 2\n"} {
		require.NoError(t, strictyaml.CheckAliases([]byte(doc)), doc)
	}
}

// Only the paths of fields with faults are kept, because the paths of all nodes of a document would be much larger
// than the document.
func TestPathsUseBoundedMemory(t *testing.T) {
	key := strings.Repeat("k", 400)
	doc := strings.Repeat(`{"`+key+`":`, 30) + "[" + strings.Repeat("1,", 15_000) + "1]" + strings.Repeat("}", 30)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.ErrorContains(t, unmarshal(doc, &outer{}), "unknown field")
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

// NaN and infinite numbers are refused, with their position. JSON does not have such numbers, and Go's JSON encoder
// does not report their position.
func TestNumbersOutsideJSONAreRefused(t *testing.T) {
	require.EqualError(t, unmarshal("fraction: .nan\nlist: [{name: a}, {name: -.inf}]\nlabels: {example.com/a: .inf}\n",
		&outer{}),
		"line 1: fraction: got NaN, want a finite number\n"+
			"line 2: list[1].name: got -Inf, want a finite number\n"+
			"line 3: labels[\"example.com/a\"]: got +Inf, want a finite number")
}

// The escape \/ in JSON is accepted. YAML 1.1 does not have this escape, but many JSON encoders write it.
func TestUnmarshalReadsJSONWithEscapedSlashes(t *testing.T) {
	var got outer
	require.NoError(t, unmarshal(`{"name":"a\\\/b\\/c","amount":{"nvidia.com\/gpu":"1"}}`, &got))
	require.Equal(t, `a\/b\/c`, got.Name)
	require.Contains(t, got.Amount, corev1.ResourceName("nvidia.com/gpu"))
}

// Quantities with a large exponent are refused: arithmetic on them takes seconds to minutes, and hundreds of MB of
// memory.
func TestAmountsWithManyDigitsAreRefused(t *testing.T) {
	for _, amount := range []string{"1e300000", `"1E-300000"`, `" 1e300000"`, `"1234567890123456789012e300000"`, `"` + strings.Repeat("9", 60000) + `"`} {
		err := unmarshal(`{"amount":{"cpu":`+amount+`}}`, &outer{})
		require.ErrorContains(t, err, "want a quantity such as", amount)
		require.True(t, strings.HasPrefix(err.Error(), "amount.cpu: got "), err)
		require.Less(t, len(err.Error()), 200)
	}
}

func TestLaterErrorsBelowAFaultyPathAreDropped(t *testing.T) {
	faults := strictyaml.Faults{{Path: "a.b"}, {Message: "the document"}}
	var later strictyaml.Faults
	for _, path := range []string{"a.b", "a.b.c", "a.b[0]", "a.bc", "a", "", "d"} {
		later.Add(path, "later")
	}
	later = append(later, strictyaml.Fault{Path: "e", Against: "a.b"}, strictyaml.Fault{Path: "f", Against: "a.c"})
	var paths []string
	for _, f := range faults.And(later)[2:] {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"a.bc", "a", "", "d", "f"}, paths)
}

// The text of the faults is bounded, because it becomes part of workflow histories, whose payloads are bounded.
func TestFaultsAreBounded(t *testing.T) {
	var faults strictyaml.Faults
	for range 100 {
		faults.Add("labels.a", "the value %q is too long", strings.Repeat("é", 100_000))
	}
	require.Less(t, len(faults.Error()), 40_000)
}

func TestValidationRules(t *testing.T) {
	rules := strictyaml.NewRules(map[string]strictyaml.Check{
		"upper": {Valid: func(s string) bool { return s == strings.ToUpper(s) }, Fault: "%q is not upper case"},
	}, map[string]string{"Shape": "give one"})
	type spec struct {
		Name  string         `json:"name" validate:"required"`
		Code  string         `json:"code" validate:"upper"`
		Shape map[string]int `json:"shape" validate:"required"`
		Min   int            `json:"min" validate:"gte=0,ltefield=Max"`
		Max   int            `json:"max" validate:"lte=10"`
		TTL   *int64         `json:"ttl" validate:"omitempty,gte=0"`
		Kind  string         `json:"kind" validate:"oneof=a b"`
		Cost  *float64       `json:"cost" validate:"omitempty,gt=0"`
		Text  string         `json:"text" validate:"max=2"`
		Other string         `json:"other" validate:"eq=1"`
	}
	type all struct {
		Specs []spec `json:"specs" validate:"min=1,dive"`
	}
	ttl, cost := int64(-1), 0.0
	faults := rules.Check(&all{Specs: []spec{{Code: "x%q", Min: 12, Max: 11, TTL: &ttl, Kind: "c", Cost: &cost,
		Text: "long"}}})
	require.EqualError(t, faults, `specs[0].name: is missing
specs[0].code: "x%q" is not upper case
specs[0].shape: is missing: give one
specs[0].min: is 12, above max: lower it, or raise max
specs[0].max: is 11: give at most 10
specs[0].ttl: is -1: give at least 0
specs[0].kind: got "c", want one of a, b
specs[0].cost: is 0: give more than 0
specs[0].text: is too long: give at most 2
specs[0].other: breaks the rule eq=1`)
	require.Equal(t, "specs[0].max", faults[3].Against)
	require.EqualError(t, rules.Check(&all{}), "specs: is missing")
	require.Empty(t, rules.Check(all{Specs: []spec{{Name: "a", Shape: map[string]int{}, Kind: "a", Other: "1"}}}))
	require.NotEmpty(t, rules.Check(nil), "not a struct")
}

func FuzzUnmarshalNeverPanics(f *testing.F) {
	f.Add([]byte("num: 3\nlist: [{name: a}]\namount: {cpu: 1}"))
	f.Add([]byte(`{"t":"x","p":null,"ref":{"name":null},"labels":{"":null}}`))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("{? [a]: b, ? {c: d}: e, null: f, 1.5: g}"))
	f.Add([]byte("t: !!timestamp 2027-01-01\nname: !!binary YQ==\n"))
	f.Fuzz(func(_ *testing.T, doc []byte) { _ = unmarshal(string(doc), &outer{}) })
}
