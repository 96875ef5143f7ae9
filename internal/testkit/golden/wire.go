package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
)

var record = flag.Bool("record-wire", false, "write a new file of each type that has changed, beside the old ones")

// Wire holds a type that is written in one version of the program and read in another against what earlier versions
// wrote: the files <name>.1.json, <name>.2.json and so on of a folder. Each is read, strictly, by today's type, which
// must keep all that is in it; and the newest has every field that the type has today. A type is given as its zero
// value; what leave says stays empty, and needs a test of its own.
func Wire(t *testing.T, dir, name string, zero any, leave ...reflect.Type) {
	t.Helper()
	of := reflect.TypeOf(zero)
	today := reflect.New(of).Elem()
	fill(t, today, name, leave, 0)
	text, err := json.MarshalIndent(today.Interface(), "", " ")
	require.NoError(t, err)

	var newest []byte
	n := 0
	for ; ; n++ {
		was, err := os.ReadFile(file(dir, name, n+1))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		require.NoError(t, err)
		require.NoError(t, keeps(of, was), "%s is lost to whoever still reads it", file(dir, name, n+1))
		newest = was
	}
	if newest != nil && covers(generic(t, newest), generic(t, text)) {
		return
	}
	if !*record {
		t.Errorf("%s has a field that no file in %s has: go test -run %s -record-wire, and never change an old file",
			name, dir, t.Name())
		return
	}
	require.NoError(t, os.WriteFile(file(dir, name, n+1), append(text, '\n'), 0o600))
}

func file(dir, name string, n int) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%d.json", name, n))
}

// keeps fails unless a type reads all of the text, and writes it again as it was.
func keeps(of reflect.Type, text []byte) error {
	value := reflect.New(of)
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(value.Interface()); err != nil {
		return err
	}
	again, err := json.Marshal(value.Interface())
	if err != nil {
		return err
	}
	var was, is any
	if err := errors.Join(json.Unmarshal(text, &was), json.Unmarshal(again, &is)); err != nil {
		return err
	}
	return within(was, is, "")
}

// within fails at the first value of was that is has not.
func within(was, is any, at string) error {
	switch w := was.(type) {
	case map[string]any:
		i, _ := is.(map[string]any)
		for key, value := range w {
			if err := within(value, i[key], at+"."+key); err != nil {
				return err
			}
		}
		return nil
	case []any:
		i, _ := is.([]any)
		if len(i) != len(w) {
			return fmt.Errorf("%s had %d elements and has %d", at, len(w), len(i))
		}
		for n := range w {
			if err := within(w[n], i[n], fmt.Sprintf("%s[%d]", at, n)); err != nil {
				return err
			}
		}
		return nil
	}
	if was != is {
		return fmt.Errorf("%s was %v and is %v", at, was, is)
	}
	return nil
}

// covers reports whether the text has every field of the sample.
func covers(text, sample any) bool {
	switch s := sample.(type) {
	case map[string]any:
		w, _ := text.(map[string]any)
		for key, value := range s {
			if _, has := w[key]; !has || !covers(w[key], value) {
				return false
			}
		}
	case []any:
		w, _ := text.([]any)
		return len(w) == len(s) && (len(s) == 0 || covers(w[0], s[0]))
	}
	return true
}

func generic(t *testing.T, text []byte) (out any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// deepest bounds types that contain themselves.
const deepest = 12

// fill gives every exported field a value that is not its zero, and each string the name of its field. What leave says
// it leaves.
func fill(t *testing.T, v reflect.Value, name string, leave []reflect.Type, depth int) {
	t.Helper()
	if slices.Contains(leave, v.Type()) || fillKnown(v, name) || depth > deepest {
		return
	}
	inner := func(v reflect.Value, name string) { fill(t, v, name, leave, depth+1) }
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		inner(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		inner(v.Index(0), name)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		inner(key, name)
		inner(value, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for n := range v.NumField() {
			if field := v.Type().Field(n); field.IsExported() && field.Tag.Get("json") != "-" {
				inner(v.Field(n), field.Name)
			}
		}
	default:
		t.Fatalf("%s: no value for a %s", name, v.Type())
	}
}

// fillKnown fills what holds no other value, and types that are written otherwise than their fields say.
func fillKnown(v reflect.Value, name string) bool {
	switch known := v.Addr().Interface().(type) {
	case *time.Time:
		*known = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		return true
	case *resource.Quantity:
		*known = resource.MustParse("3")
		return true
	case *json.RawMessage:
		*known = json.RawMessage(`{"raw":true}`)
		return true
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(name)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.CanUint():
		v.SetUint(7)
	case v.CanFloat():
		v.SetFloat(1.5)
	default:
		return false
	}
	return true
}
