// Package wire reads and writes unknown fields of protobuf messages. Such a field is not in the message's Go type,
// because only another version of Cluster Autoscaler's protocols defines it.
package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Field returns the first value of an unknown field with the type bytes, string or message. It returns nil if the
// field is absent.
func Field(m proto.Message, field protowire.Number) []byte {
	if values := Fields(m, field); len(values) > 0 {
		return values[0]
	}
	return nil
}

// Fields returns all values of a repeated unknown field with the type bytes, string or message. It stops at the first
// malformed byte.
func Fields(m proto.Message, field protowire.Number) (values [][]byte) {
	for raw := []byte(m.ProtoReflect().GetUnknown()); len(raw) > 0; {
		number, kind, tag := protowire.ConsumeTag(raw)
		n := protowire.ConsumeFieldValue(number, kind, raw[max(tag, 0):])
		if tag < 0 || n < 0 {
			break
		}
		if number == field && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(raw[tag:])
			values = append(values, value)
		}
		raw = raw[tag+n:]
	}
	return values
}

// Append adds an unknown field with the type bytes, string or message.
func Append(m proto.Message, field protowire.Number, value []byte) {
	raw := protowire.AppendTag(m.ProtoReflect().GetUnknown(), field, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(raw, value))
}

// Varint returns the last value of a varint field in an encoded message, or 0 if the field is absent. If the message
// is malformed, it returns the last value before the malformed byte.
func Varint(raw []byte, field protowire.Number) (value uint64) {
	for len(raw) > 0 {
		number, kind, tag := protowire.ConsumeTag(raw)
		if tag < 0 {
			return value
		}
		n := protowire.ConsumeFieldValue(number, kind, raw[tag:])
		if n < 0 {
			return value
		}
		if number == field && kind == protowire.VarintType {
			value, _ = protowire.ConsumeVarint(raw[tag:])
		}
		raw = raw[tag+n:]
	}
	return value
}
