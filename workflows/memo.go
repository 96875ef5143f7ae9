package workflows

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/codec"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// maxReadableMemo is the size up to which a memo value is plain JSON, so that the Temporal UI shows it.
const maxReadableMemo = 8 << 10

// EncodingGzip is the payload encoding of larger memo values: JSON, compressed with gzip. A codec server can show
// such values.
const EncodingGzip = "json/gzip"

// memoValue returns v as a memo value. Up to maxReadableMemo bytes this is JSON, and for a larger value compressed
// JSON.
func memoValue(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode memo value %T: %w", v, err)
	}
	if len(text) <= maxReadableMemo {
		return json.RawMessage(text), nil
	}
	packed, err := fleet.Encode(json.RawMessage(text))
	if err != nil {
		return nil, err
	}
	return converter.NewRawValue(&common.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(EncodingGzip)}, Data: packed,
	}), nil
}

// DecodeMemo decodes a memo value of an entity into out.
func DecodeMemo(payload *common.Payload, out any) error {
	if string(payload.GetMetadata()[converter.MetadataEncoding]) == EncodingGzip {
		return fleet.Decode(payload.GetData(), out)
	}
	if string(payload.GetMetadata()[converter.MetadataEncoding]) == codec.Encoding {
		return errors.New("it is encrypted: give its keys with --temporal-codec-key-file")
	}
	return converter.GetDefaultDataConverter().FromPayload(payload, out)
}
