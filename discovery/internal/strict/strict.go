// Package strict decodes YAML and JSON documents so that a person can mend them: unknown and repeated keys are refused,
// and every fault is reported at once, each with the path of its field ("offers[1].lendable.cpu").
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet/document"
)

// Fault is one thing wrong in a document.
type Fault struct {
	Path    string // empty when the document as a whole is meant
	Message string
}

// Faults are all that is wrong in a document, as one error.
type Faults []Fault

// What Error shows at most: lines, and characters of one.
const (
	maxLines = 40
	maxLine  = 500
)

// Error has one line per fault; beyond 40 it only counts, because errors may enter histories and logs. Long lines are cut.
func (f Faults) Error() string {
	lines := make([]string, 0, min(len(f), maxLines+1))
	for i, one := range f {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf("and %d more", len(f)-maxLines))
			break
		}
		if one.Path != "" {
			one.Message = one.Path + ": " + one.Message
		}
		if r := []rune(one.Message); len(r) > maxLine {
			one.Message = string(r[:maxLine-1]) + "…"
		}
		lines = append(lines, one.Message)
	}
	return strings.Join(lines, "\n")
}

// Add appends a fault.
func (f *Faults) Add(path, format string, args ...any) {
	*f = append(*f, Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Decode fills target, a pointer to a struct with json tags, from one YAML or JSON document. Fields that cannot be
// decoded keep their zero value, so that the caller can validate the rest and report everything together. An empty
// document is a fault.
func Decode(text []byte, target any) Faults {
	var faults Faults
	if json.Valid(text) {
		text = []byte(plainSlashes.Replace(string(text)))
	} else if err := document.Check(text); err != nil {
		faults.Add("", "%v", err)
		return faults
	}
	raw, err := yaml.YAMLToJSONStrict(text)
	if nowhere := (*json.UnsupportedValueError)(nil); errors.As(err, &nowhere) {
		var content any
		_ = goyaml.Unmarshal(text, &content)
		noNumbers(content, "", &faults)
		slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Message, b.Message) })
	}
	if len(faults) > 0 {
		return faults
	}
	if err != nil {
		faults.Add("", "%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: "))
		return faults
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		faults.Add("", "the document is empty")
		return faults
	}
	value(raw, reflect.ValueOf(target).Elem(), "", &faults)
	return faults
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func value(raw json.RawMessage, v reflect.Value, path string, faults *Faults) {
	if bytes.Equal(raw, []byte("null")) { // "key:" with nothing behind it: the field stays unset
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if v.Addr().Type().Implements(unmarshaler) {
		leaf(raw, v, path, faults)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		object(raw, v, path, faults)
	case reflect.Map:
		mapping(raw, v, path, faults)
	case reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			faults.Add(path, "must be a list, is %s", kind(raw))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			value(item, v.Index(i), path+"["+strconv.Itoa(i)+"]", faults)
		}
	default:
		leaf(raw, v, path, faults)
	}
}

func object(raw json.RawMessage, v reflect.Value, path string, faults *Faults) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		faults.Add(path, "must be a mapping, is %s", kind(raw))
		return
	}
	known := map[string]reflect.Value{}
	fields(v, known)
	for _, key := range sortedKeys(members) {
		field, ok := known[key]
		if !ok {
			faults.Add(Join(path, key), "unknown key; known here: %s", strings.Join(sortedKeys(known), ", "))
			continue
		}
		value(members[key], field, Join(path, key), faults)
	}
}

func fields(v reflect.Value, known map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			fields(v.Field(i), known)
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			known[name] = v.Field(i)
		}
	}
}

func mapping(raw json.RawMessage, v reflect.Value, path string, faults *Faults) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		faults.Add(path, "must be a mapping, is %s", kind(raw))
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(members)))
	for _, key := range sortedKeys(members) {
		item := reflect.New(v.Type().Elem()).Elem()
		before := len(*faults)
		value(members[key], item, Join(path, key), faults)
		if len(*faults) == before {
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
		}
	}
}

func leaf(raw json.RawMessage, v reflect.Value, path string, faults *Faults) {
	err := error(nil)
	if v.Type() == reflect.TypeFor[resource.Quantity]() {
		_, err = Quantity(strings.TrimSpace(strings.Trim(string(raw), `"`)))
	}
	if err == nil {
		err = json.Unmarshal(raw, v.Addr().Interface())
	}
	if err == nil {
		return
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		faults.Add(path, "must be %s, is %s", noun(v.Type()), scalar(raw))
		return
	}
	v.SetZero()
	faults.Add(path, "cannot read %s: %v", scalar(raw), err)
}

// Join appends a key to a path; keys that are not plain words are quoted in brackets.
func Join(path, key string) string {
	plain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
	switch {
	case !plain:
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

func noun(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	default:
		return "a " + t.String()
	}
}

// kind never shows a string's content: where a mapping is due, somebody may have pasted a token.
func kind(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "a mapping"
	case '[':
		return "a list"
	case '"':
		return "a string"
	default:
		return scalar(raw)
	}
}

func scalar(raw json.RawMessage) string {
	if raw[0] == '{' || raw[0] == '[' {
		return kind(raw)
	}
	if len(raw) > 60 {
		return string(raw[:57]) + "..."
	}
	return string(raw)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
