package fleet

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// Encode packs an entity's state or snapshot as compressed JSON, because a thousand instances must fit in one payload.
func Encode(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	var packed bytes.Buffer // its writes never fail
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(text)
	_ = z.Close()
	return packed.Bytes(), nil
}

// maxDecoded bounds the unpacked size of a state, in bytes.
const maxDecoded = 64 << 20

// Decode unpacks the result of Encode.
func Decode(packed []byte, v any) error {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("decompress %T: %w", v, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxDecoded))
	if err != nil {
		return fmt.Errorf("decompress %T: %w", v, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}
