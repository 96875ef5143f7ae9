package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// decode fills out, a pointer, from the tree by the types' JSON names. Unlike yaml.UnmarshalStrict it goes on after a
// mistake and knows the path of each; unlike it, null counts as absent only for fields.
func decode(tree any, out any) []*FieldError {
	d := &decoder{}
	if tree != nil {
		d.value("", tree, reflect.ValueOf(out).Elem())
	}
	return d.complaints
}

type decoder struct{ complaints []*FieldError }

func (d *decoder) complain(path, format string, args ...any) {
	d.complaints = append(d.complaints, &FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) value(path string, in any, out reflect.Value) {
	switch leaf := out.Addr().Interface().(type) {
	case *resource.Quantity:
		d.quantity(path, in, leaf)
		return
	case *metav1.Duration:
		d.duration(path, in, leaf)
		return
	case *metav1.Time:
		d.complain(path, "is set by Kubernetes alone: remove it")
		return
	}
	switch out.Kind() {
	case reflect.Pointer:
		out.Set(reflect.New(out.Type().Elem()))
		d.value(path, in, out.Elem())
	case reflect.Struct:
		d.object(path, in, out)
	case reflect.Map:
		d.mapping(path, in, out)
	case reflect.Slice:
		d.list(path, in, out)
	case reflect.String:
		text, ok := in.(string)
		if !ok {
			d.complain(path, "got %s, want text: put it in quotes", kindOf(in))
			return
		}
		out.SetString(text)
	case reflect.Int, reflect.Int32, reflect.Int64:
		number, ok := in.(json.Number)
		n, err := strconv.ParseInt(string(number), 10, 32)
		if errors.Is(err, strconv.ErrRange) {
			d.complain(path, "got %s, want a whole number of at most %d", kindOf(in), math.MaxInt32)
			return
		}
		if !ok || err != nil {
			d.complain(path, "got %s, want a whole number", kindOf(in))
			return
		}
		out.SetInt(n)
	default: // a type nobody has used in the config yet
		d.complain(path, "cannot be set in this file: remove it")
	}
}

func (d *decoder) object(path string, in any, out reflect.Value) {
	object, ok := in.(map[string]any)
	if !ok {
		d.complain(path, "got %s, want an object with fields", kindOf(in))
		return
	}
	fields := map[string]reflect.Value{}
	for i := range out.NumField() {
		name, _, _ := strings.Cut(out.Type().Field(i).Tag.Get("json"), ",")
		fields[name] = out.Field(i)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := fields[key]
		switch {
		case !known:
			d.complain(join(path, key), "is not a field here: remove it, or use one of %s",
				strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		case object[key] != nil:
			d.value(join(path, key), object[key], field)
		}
	}
}

func (d *decoder) mapping(path string, in any, out reflect.Value) {
	object, ok := in.(map[string]any)
	if !ok {
		d.complain(path, "got %s, want keys with values", kindOf(in))
		return
	}
	out.Set(reflect.MakeMapWithSize(out.Type(), len(object)))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		element := reflect.New(out.Type().Elem()).Elem()
		before := len(d.complaints)
		d.value(join(path, key), object[key], element)
		if len(d.complaints) == before {
			out.SetMapIndex(reflect.ValueOf(key).Convert(out.Type().Key()), element)
		}
	}
}

func (d *decoder) list(path string, in any, out reflect.Value) {
	items, ok := in.([]any)
	if !ok {
		d.complain(path, "got %s, want a list: begin each item with \"- \"", kindOf(in))
		return
	}
	out.Set(reflect.MakeSlice(out.Type(), len(items), len(items)))
	for i, item := range items {
		d.value(fmt.Sprintf("%s[%d]", path, i), item, out.Index(i))
	}
}

// quantityForm keeps exponents short: ParseQuantity computes with as many digits as it is given.
var quantityForm = regexp.MustCompile(`^[+-]?[0-9.]{1,24}([numkKMGTPE]i?|[eE][+-]?[0-9]{1,2})?$`)

func (d *decoder) quantity(path string, in any, out *resource.Quantity) {
	var text string
	switch v := in.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	default:
		d.complain(path, "got %s, want a quantity such as 4, 500m or 8Gi", kindOf(in))
		return
	}
	parsed, err := resource.ParseQuantity(text)
	if !quantityForm.MatchString(text) || err != nil {
		d.complain(path, "got %q, want a quantity such as 4, 500m or 8Gi", text)
		return
	}
	*out = parsed
}

func (d *decoder) duration(path string, in any, out *metav1.Duration) {
	text, ok := in.(string)
	parsed, err := time.ParseDuration(text)
	if !ok || err != nil {
		d.complain(path, "got %s, want a duration such as 90s, 2m or 1h30m", kindOf(in))
		return
	}
	if parsed == 0 { // not the same as left out, which means the default
		d.complain(path, "is 0: give more than 0, such as 1s, or leave it out for the default")
		return
	}
	out.Duration = parsed
}

// kindOf names what was found, for people.
func kindOf(in any) string {
	switch v := in.(type) {
	case nil:
		return "nothing"
	case bool:
		return fmt.Sprintf("the truth value %t", v)
	case json.Number:
		return "the number " + v.String()
	case string:
		return strconv.Quote(v)
	case []any:
		return "a list"
	default:
		return "an object"
	}
}
