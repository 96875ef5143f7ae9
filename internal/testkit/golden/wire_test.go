package golden

import (
	"encoding/json"
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

// A text of an earlier version must be read whole, and the newest must have all fields.
func TestWhatIsKept(t *testing.T) {
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
	sample := generic(t, text)
	require.True(t, covers(sample, sample))
	for _, older := range []string{`{}`, `{"name":"a","many":[{}],"by":{"By":{"kept":"b"}},"later":{"kept":"b"}}`,
		`{"name":"a","many":[{"kept":"b"}],"by":{"By":{"kept":"b"}}}`} {
		require.False(t, covers(generic(t, []byte(older)), sample), older)
	}
}
