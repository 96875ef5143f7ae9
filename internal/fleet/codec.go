package fleet

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// Encode packs an entity's state or snapshot: JSON, compressed, because a thousand instances must fit in one payload.
func Encode(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	var packed bytes.Buffer // where no write fails
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(text)
	_ = z.Close()
	return packed.Bytes(), nil
}

// maxDecoded bounds what a packed state may come to.
const maxDecoded = 64 << 20

// Decode is Encode's reverse.
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
