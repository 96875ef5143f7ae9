package strictyaml

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

const (
	wantMapping  = "a mapping (key: value)"
	wantList     = `a list: begin each item with "- "`
	wantQuantity = "a quantity such as 4, 500m or 8Gi"
)

// Unmarshal decodes text into target, a pointer to a struct, with Read and Decode. It returns the tree and the error
// of Read, and the faults of Read and Decode. An empty text is an error.
func Unmarshal(text []byte, target any) (map[string]any, Faults, error) {
	tree, faults, err := Read(text)
	if err == nil && tree == nil {
		err = Faults{{Message: "the document is empty"}}
	}
	if err != nil {
		return nil, nil, err
	}
	return tree, faults.And(Decode(tree, target)), nil
}

// Decode fills target, a pointer to a struct with json tags, from the result of Read, and returns the faults. A field
// with a fault keeps its zero value. The caller can therefore validate the other fields, too, and report all faults
// together. A field with the value null is treated as absent. In a list or a map, null is a fault.
func Decode(tree map[string]any, target any) (faults Faults) {
	faults.value("", tree, reflect.ValueOf(target).Elem())
	return faults
}

func (f *Faults) value(path string, in any, out reflect.Value) {
	if out.Kind() == reflect.Pointer {
		out.Set(reflect.New(out.Type().Elem()))
		out = out.Elem()
	}
	if _, ok := out.Addr().Interface().(json.Unmarshaler); ok {
		f.scalar(path, in, out)
		return
	}
	switch out.Kind() {
	case reflect.Struct:
		f.object(path, in, out)
	case reflect.Map:
		f.mapping(path, in, out)
	case reflect.Slice:
		items, ok := expect[[]any](f, path, in, wantList)
		if !ok {
			return
		}
		out.Set(reflect.MakeSlice(out.Type(), len(items), len(items)))
		for i, item := range items {
			f.value(index(path, i), item, out.Index(i))
		}
	default:
		f.scalar(path, in, out)
	}
}

func expect[T any](f *Faults, path string, in any, want string) (T, bool) {
	v, ok := in.(T)
	if _, text := in.(string); text {
		f.Add(path, "got text, want %s", want) // the text is not shown, because it may be a pasted token
	} else if !ok {
		f.Add(path, "got %s, want %s", describe(in), want)
	}
	return v, ok
}

func (f *Faults) object(path string, in any, out reflect.Value) {
	members, ok := expect[map[string]any](f, path, in, wantMapping)
	if !ok {
		return
	}
	known := map[string]reflect.Value{}
	for _, field := range reflect.VisibleFields(out.Type()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			known[name] = out.FieldByIndex(field.Index)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		field, ok := known[key]
		switch {
		case !ok:
			f.Add(Join(path, key), "unknown field: remove it, or use one of %s",
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			(*f)[len(*f)-1].Unknown = true
		case members[key] != nil:
			f.value(Join(path, key), members[key], field)
		}
	}
}

func (f *Faults) mapping(path string, in any, out reflect.Value) {
	members, ok := expect[map[string]any](f, path, in, wantMapping)
	if !ok {
		return
	}
	out.Set(reflect.MakeMapWithSize(out.Type(), len(members)))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		item := reflect.New(out.Type().Elem()).Elem()
		before := len(*f)
		f.value(Join(path, key), members[key], item)
		if len(*f) == before {
			out.SetMapIndex(reflect.ValueOf(key).Convert(out.Type().Key()), item)
		}
	}
}

func (f *Faults) scalar(path string, in any, out reflect.Value) {
	raw, err := json.Marshal(in)
	if _, ok := out.Interface().(resource.Quantity); ok && err == nil {
		_, err = Quantity(strings.TrimSpace(strings.Trim(string(raw), `"`)))
	}
	if err == nil {
		err = json.Unmarshal(raw, out.Addr().Interface())
	}
	if err != nil || in == nil {
		out.SetZero()
		f.Add(path, "got %s, want %s", describe(in), wanted(out))
		return
	}
	if d, ok := out.Interface().(term); ok && d.ZeroIsNever() < 0 {
		out.SetZero()
		f.Add(path, "is %s: give more than 0, such as 5m, or 0 for never", d.ZeroIsNever())
	}
	if d, ok := out.Interface().(metav1.Duration); ok && d.Duration <= 0 { // only an absent field means the default
		out.SetZero()
		f.Add(path, "is %s: give more than 0, such as 1s, or leave it out for the default", d.Duration)
	}
}

// term is the interface of durations for which 0 means never.
type term interface{ ZeroIsNever() time.Duration }

// wanted describes the values that a field accepts, for a message.
func wanted(out reflect.Value) string {
	switch out.Interface().(type) {
	case term:
		return "a duration such as 5m, or 0 for never"
	case resource.Quantity:
		return wantQuantity
	case metav1.Duration:
		return "a duration such as 90s, 2m or 1h30m"
	case time.Time, metav1.Time:
		return "a time such as 2027-01-31T00:00:00Z"
	}
	switch out.Kind() {
	case reflect.String:
		return "text: put it in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	default:
		return "a " + out.Type().String()
	}
}

// describe renders a value of the document for a message.
func describe(in any) string {
	switch v := in.(type) {
	case nil:
		return "nothing"
	case string:
		return strconv.Quote(shorten.To(v, 60))
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		raw, _ := json.Marshal(v) // a number, a boolean or a time
		return string(raw)
	}
}

// quantityForm matches a quantity with a bounded exponent. ParseQuantity, and all computations with its result, use
// as many digits as the text specifies. With a large exponent they take minutes.
var quantityForm = regexp.MustCompile(QuantityPattern)

// QuantityPattern is a regular expression for the quantities that Quantity accepts.
const QuantityPattern = `^[+-]?[0-9.]{1,24}([numkKMGTPE]i?|[eE][+-]?[0-9]{1,2})?$`

// Quantity parses a quantity from an untrusted text. It returns an error for a text that QuantityPattern does not
// match.
func Quantity(text string) (resource.Quantity, error) {
	if !quantityForm.MatchString(text) {
		return resource.Quantity{}, errors.New("want " + wantQuantity)
	}
	return resource.ParseQuantity(text)
}
