package golden

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type inner struct {
	Kept string `json:"kept"`
}

type today struct {
	Name  string           `json:"name"`
	Many  []inner          `json:"many,omitempty"`
	By    map[string]inner `json:"by,omitempty"`
	Later *inner           `json:"later,omitempty"`
}

// A record of an earlier version must be decoded without loss, and the newest record must contain all fields.
// Otherwise the check fails.
func TestRecordsDecodeCompletely(t *testing.T) {
	for text, bad := range map[string]string{
		`{"name":"a"}`:                       "",
		`{"name":"a","many":[{"kept":"b"}]}`: "",
		`{"name":"a","gone":1}`:              "unknown field",
		`{"name":1}`:                         "cannot unmarshal",
		`{"name":"a","by":{"x":{"kept":"b","moved":"c"}}}`: "unknown field",
	} {
		if err := keeps(reflect.TypeFor[today](), []byte(text)); bad == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, bad, text)
		}
	}
	require.ErrorContains(t, keeps(reflect.TypeFor[struct {
		At int `json:"at,omitempty"`
	}](), []byte(`{"at":0}`)), ".at was 0 and is", "it is not written again")

	full := reflect.New(reflect.TypeFor[today]()).Elem()
	fill(t, full, "x", nil, 0)
	text, err := json.Marshal(full.Interface())
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"Name","many":[{"kept":"Kept"}],"by":{"By":{"kept":"Kept"}},"later":{"kept":"Kept"}}`,
		string(text))
	sample := generic(text)
	require.True(t, covers(sample, sample))
	for _, older := range []string{`{}`, `{"name":"a","many":[{}],"by":{"By":{"kept":"b"}},"later":{"kept":"b"}}`,
		`{"name":"a","many":[{"kept":"b"}],"by":{"By":{"kept":"b"}}}`} {
		require.False(t, covers(generic([]byte(older)), sample), older)
	}
}

// Until a release contains a record, a change of the type replaces the record. After that the record stays, and the
// next change adds a new record.
func TestReleasedRecordStays(t *testing.T) {
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)
		out, err := exec.Command("git", args...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	of := reflect.TypeFor[today]()
	changes := func(text string) { // writes the record of a type with this encoding
		t.Helper()
		r, err := readRecords(".", "Today")
		require.NoError(t, err)
		require.NoError(t, r.write(of, []byte(text)))
	}
	are := func(want ...string) {
		t.Helper()
		r, err := readRecords(".", "Today")
		require.NoError(t, err)
		require.Len(t, r.texts, len(want))
		for n, text := range want {
			require.Equal(t, text, string(r.texts[n]))
		}
	}
	const one, two, three = `{"name":"a"}`, `{"name":"a","many":[{"kept":"b"}]}`, `{"name":"a","later":{"kept":"b"}}`
	changes(one) // in a folder without git
	git("init", "-q")
	changes(two) // in a repository without a tag
	changes(two)
	are(two)
	git("add", ".")
	git("commit", "-qm", "one")
	git("tag", "v0.1.0")
	changes(three)
	are(two, three)
	changes(`{"name":"a","by":{"By":{"kept":"b"}}}`)
	are(two, `{"name":"a","by":{"By":{"kept":"b"}}}`)

	require.NoError(t, os.WriteFile("Today.1.json", []byte(one), 0o600))
	_, err := readRecords(".", "Today")
	require.EqualError(t, err, "Today.1.json is released and has changed: git checkout v0.1.0 -- Today.1.json")
	require.NoError(t, os.Remove("Today.1.json"))
	_, err = readRecords(".", "Today")
	require.ErrorContains(t, err, "Today.1.json is released and has changed", "it is gone")
}

// A record fails the check if it cannot be decoded without loss, or lacks a field.
func TestIncompleteRecordFails(t *testing.T) {
	of, text := reflect.TypeFor[today](), []byte(`{"name":"a","later":{"kept":"b"}}`)
	for _, c := range []struct {
		texts []string
		err   string
	}{
		{nil, "Today.1.json is missing"},
		{[]string{string(text)}, ""},
		{[]string{`{"name":"a"}`}, "Today.1.json lacks a field that golden.today has"},
		{[]string{`{"name":"a"}`, string(text)}, ""},
		{[]string{`{"gone":"a"}`, string(text)},
			`the type reads Today.1.json with a loss or an error: json: unknown field "gone"`},
	} {
		r := &records{dir: ".", name: "Today"}
		for _, text := range c.texts {
			r.texts = append(r.texts, []byte(text))
		}
		if err := r.check(of, text); c.err == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.err)
		}
	}
}
