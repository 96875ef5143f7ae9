// Package protobytes encodes protobuf messages from a readable text with field numbers, and compares encoded messages
// with such a text. It uses no generated types, so a test can write messages as another version of the program would.
//
// A text is a list of `number: value`. A value is an integer, a double (with a decimal point), a "string", a message
// in braces, or @name for bytes that the caller passes. In a comparison, `number: finite` matches any finite double
// that is not negative, and `!number:` requires that the field is absent.
package protobytes

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is one field of a message. Exactly one of its values is set.
type Field struct {
	Number protowire.Number
	Absent bool

	raw      string // the field's text
	kind     protowire.Type
	varint   uint64
	fixed    uint64
	finite   bool
	bytes    []byte
	message  []Field
	isNested bool
}

var tokens = regexp.MustCompile(`"[^"]*"|[{}]|!?[0-9]+:|-?[0-9]+\.[0-9]+|-?[0-9]+|@\w+|\w+|\S`)

// Parse parses the text of a message. named contains the bytes for each @name.
func Parse(text string, named map[string][]byte) ([]Field, error) {
	p := parser{left: tokens.FindAllString(text, -1), named: named}
	fields, err := p.message()
	if err == nil && len(p.left) > 0 {
		err = fmt.Errorf("unexpected text after the message: %q", strings.Join(p.left, " "))
	}
	return fields, err
}

type parser struct {
	left  []string
	named map[string][]byte
}

func (p *parser) next() (token string) {
	if len(p.left) > 0 {
		token, p.left = p.left[0], p.left[1:]
	}
	return token
}

func (p *parser) message() (fields []Field, err error) {
	for len(p.left) > 0 && p.left[0] != "}" {
		token := p.next()
		f := Field{raw: token, Absent: strings.HasPrefix(token, "!")}
		number, ok := strings.CutSuffix(strings.TrimPrefix(token, "!"), ":")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not a field number", token)
		}
		f.Number = protowire.Number(n)
		if !f.Absent {
			if err := p.value(&f); err != nil {
				return nil, err
			}
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func (p *parser) value(f *Field) (err error) {
	token := p.next()
	f.raw += " " + token
	f.kind = protowire.BytesType
	switch {
	case token == "{":
		f.isNested = true
		if f.message, err = p.message(); err == nil && p.next() != "}" {
			err = errors.New("a brace is not closed")
		}
	case strings.HasPrefix(token, `"`):
		f.bytes = []byte(strings.Trim(token, `"`))
	case strings.HasPrefix(token, "@"):
		var ok bool
		if f.bytes, ok = p.named[token[1:]]; !ok {
			err = fmt.Errorf("no bytes are named %s", token)
		}
	case token == "finite":
		f.kind, f.finite = protowire.Fixed64Type, true
	case strings.Contains(token, "."):
		var d float64
		d, err = strconv.ParseFloat(token, 64)
		f.kind, f.fixed = protowire.Fixed64Type, math.Float64bits(d)
	default:
		var n int64
		n, err = strconv.ParseInt(token, 10, 64)
		f.kind, f.varint = protowire.VarintType, uint64(n) //nolint:gosec // the encoding of a negative int64
	}
	return err
}

// Append appends the encoded message to raw and returns the result.
func Append(raw []byte, fields []Field) []byte {
	for _, f := range fields {
		raw = protowire.AppendTag(raw, f.Number, f.kind)
		switch {
		case f.kind == protowire.VarintType:
			raw = protowire.AppendVarint(raw, f.varint)
		case f.kind == protowire.Fixed64Type:
			raw = protowire.AppendFixed64(raw, f.fixed)
		case f.isNested:
			raw = protowire.AppendBytes(raw, Append(nil, f.message))
		default:
			raw = protowire.AppendBytes(raw, f.bytes)
		}
	}
	return raw
}

// Match returns an error unless the encoded message has the wanted fields. If several wanted fields have the same
// number, the message must contain them in this order. The message may have further fields.
func Match(want []Field, raw []byte) error {
	got, err := split(raw)
	if err != nil {
		return err
	}
	for _, w := range want {
		values := got[w.Number]
		if w.Absent {
			if len(values) > 0 {
				return fmt.Errorf("%s the field is present", w.raw)
			}
			continue
		}
		if len(values) == 0 {
			return fmt.Errorf("%s the field is absent, or occurs fewer times", w.raw)
		}
		got[w.Number] = values[1:]
		if err := w.match(values[0]); err != nil {
			return err
		}
	}
	return nil
}

// value is the value of one field of an encoded message.
type value struct {
	kind  protowire.Type
	bits  uint64
	bytes []byte
}

func split(raw []byte) (map[protowire.Number][]value, error) {
	fields := map[protowire.Number][]value{}
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		raw = raw[n:]
		v := value{kind: kind}
		switch kind {
		case protowire.VarintType:
			v.bits, n = protowire.ConsumeVarint(raw)
		case protowire.Fixed64Type:
			v.bits, n = protowire.ConsumeFixed64(raw)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(raw)
		default:
			n = protowire.ConsumeFieldValue(number, kind, raw)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		raw = raw[n:]
		fields[number] = append(fields[number], v)
	}
	return fields, nil
}

func (f Field) match(v value) error {
	number := math.Float64frombits(v.bits)
	switch {
	case f.kind != v.kind:
		return fmt.Errorf("%s: the field has wire type %d", f.raw, v.kind)
	case f.isNested:
		return Match(f.message, v.bytes)
	case f.kind == protowire.BytesType && !bytes.Equal(f.bytes, v.bytes):
		return fmt.Errorf("%s: the field is %q", f.raw, v.bytes)
	case f.finite && (math.IsNaN(number) || math.IsInf(number, 0) || number < 0):
		return fmt.Errorf("%s: the field is %g", f.raw, number)
	}
	return f.matchBits(v)
}

// matchBits returns an error if the wanted field is an integer or a double, and v is a different value.
func (f Field) matchBits(v value) error {
	if f.kind == protowire.VarintType && f.varint != v.bits ||
		f.kind == protowire.Fixed64Type && !f.finite && f.fixed != v.bits {
		return fmt.Errorf("%s: the field is %d", f.raw, v.bits)
	}
	return nil
}
