package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
)

var record = flag.Bool("record-wire", false, "write the record of each type that has changed")

// Wire tests that the current version of a type can read the JSON of earlier versions. Each version of the type has a
// record: one of the files <name>.1.json, <name>.2.json and so on in the folder dir. Wire fails the test unless two
// conditions hold. The current type must decode each record strictly and without loss. The newest record must have
// every field of the current type.
//
// The records that exist in the last git tag are released and must not change. After a change of the type, the flag
// -record-wire writes a new record or, if the newest record is not released yet, replaces it. Without a tag or
// without git, no record counts as released. zero is the zero value of the type. For a record, Wire sets every field
// to a nonzero value, except fields whose type is in leave. The types in leave need their own test.
func Wire(t *testing.T, dir, name string, zero any, leave ...reflect.Type) {
	t.Helper()
	of := reflect.TypeOf(zero)
	today := reflect.New(of).Elem()
	fill(t, today, name, leave, 0)
	text, err := json.MarshalIndent(today.Interface(), "", " ")
	require.NoError(t, err)
	records, err := readRecords(dir, name)
	require.NoError(t, err)
	if *record {
		require.NoError(t, records.write(of, append(text, '\n')))
		return
	}
	require.NoError(t, records.check(of, text), "go test -run %s -record-wire writes a record that is not released; "+
		"the type must be able to read every released record", t.Name())
}

// records holds the records of one type, the oldest first.
type records struct {
	dir, name string
	texts     [][]byte
	// released is the number of records that the last tag contains.
	released int
}

func readRecords(dir, name string) (*records, error) {
	r, tag := &records{dir: dir, name: name}, lastTag()
	for {
		text, err := os.ReadFile(r.file(len(r.texts) + 1))
		missing := errors.Is(err, os.ErrNotExist)
		if err != nil && !missing {
			return nil, err
		}
		was, released := atTag(tag, r.file(len(r.texts)+1))
		switch {
		case released && !bytes.Equal(was, text):
			return nil, fmt.Errorf("%s is released and has changed: git checkout %s -- %[1]s", r.file(len(r.texts)+1), tag)
		case missing:
			return r, nil
		case released:
			r.released++
		}
		r.texts = append(r.texts, text)
	}
}

func (r *records) file(n int) string {
	return filepath.Join(r.dir, fmt.Sprintf("%s.%d.json", r.name, n))
}

// check returns an error unless the type can read every record, and the newest record has all fields of the type.
// text is the JSON of a value of the type in which all fields are set.
func (r *records) check(of reflect.Type, text []byte) error {
	for n, was := range r.texts {
		if err := keeps(of, was); err != nil {
			return fmt.Errorf("the type reads %s with a loss or an error: %w", r.file(n+1), err)
		}
	}
	if len(r.texts) == 0 {
		return fmt.Errorf("%s is missing", r.file(1))
	}
	newest, sample := generic(r.texts[len(r.texts)-1]), generic(text)
	if !covers(newest, sample) {
		return fmt.Errorf("%s lacks a field that %s has", r.file(len(r.texts)), of)
	}
	return nil
}

// write writes text as the newest record if check fails. It changes no released record.
func (r *records) write(of reflect.Type, text []byte) error {
	if r.check(of, text) == nil {
		return nil
	}
	newest := max(len(r.texts), r.released+1)
	return os.WriteFile(r.file(newest), text, 0o600)
}

// lastTag returns the newest release tag in the history of HEAD, or "" without a tag or without git.
func lastTag() string {
	out, err := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// atTag returns the content of the file at the tag. ok is false if the tag does not contain the file.
func atTag(tag, file string) (text []byte, ok bool) {
	if tag == "" {
		return nil, false
	}
	text, err := exec.Command("git", "show", tag+":./"+filepath.ToSlash(file)).Output()
	return text, err == nil
}

// keeps returns an error unless the type can decode the whole text, and the encoding of the result contains all data
// of the text.
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

// within returns an error for the first value of the old document (was) that is missing in the new document (is), or
// is different there.
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

// covers reports whether the decoded text has every field that the sample has.
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

// generic decodes the text as JSON. It returns nil if the text is not valid.
func generic(text []byte) (out any) {
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// deepest is the maximum depth to which values of recursive types are filled.
const deepest = 12

// Filled returns a T in which every exported field has a nonzero value, down to a depth of 12.
func Filled[T any](t *testing.T) (full T) {
	t.Helper()
	fill(t, reflect.ValueOf(&full).Elem(), "full", nil, 0)
	return full
}

// fill sets every exported field of v to a nonzero value. A string receives the name of its field as its value. fill
// skips fields whose type is in leave.
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

// fillKnown sets a scalar, or a value of a type whose encoding differs from its fields. It returns false for other
// types.
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
