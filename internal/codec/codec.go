package codec

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// Encoding is the value of the metadata "encoding" of an encrypted payload. The metadata metadataKey contains the
// name of the key with which the payload is encrypted.
const (
	Encoding    = "binary/encrypted"
	metadataKey = "encryption-key-id"
)

// Codec implements converter.PayloadCodec with AES-256-GCM. It is safe for concurrent use.
type Codec struct {
	files *reload.Files[keys]
	log   *slog.Logger

	mu   sync.Mutex
	at   time.Time
	last keys
}

// readEvery is the minimum interval between two reads of the key file. The codec reads the file repeatedly, so that
// new keys need no restart.
const readEvery = time.Second

// Open reads the key file, and tests each key. If the file becomes invalid later, the Codec writes an error to log
// and keeps using the last valid keys.
func Open(path string, log *slog.Logger) (*Codec, error) {
	files, err := reload.Open(func(contents [][]byte) (keys, error) {
		k, err := parseKeys(contents[0])
		if err != nil {
			return k, fmt.Errorf("%s: %w", path, err)
		}
		return k, nil
	}, path)
	if err != nil {
		return nil, err
	}
	return &Codec{files: files, log: log}, nil
}

func (c *Codec) keys() keys {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= readEvery {
		c.last, c.at = c.files.Latest(c.log, "cannot use the key file for Temporal's payloads; the last keys stay in use"),
			time.Now()
	}
	return c.last
}

// Encode implements converter.PayloadCodec. It encrypts each payload with the first key. It returns payloads that are
// already encrypted unchanged.
func (c *Codec) Encode(all []*common.Payload) ([]*common.Payload, error) {
	k := c.keys()
	out := make([]*common.Payload, len(all))
	for i, p := range all {
		if encrypted(p) {
			out[i] = p
			continue
		}
		raw, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encrypt a payload: %w", err)
		}
		out[i] = &common.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), metadataKey: []byte(k.first)},
			Data:     k.by[k.first].Seal(nil, nil, raw, []byte(k.first)),
		}
	}
	return out, nil
}

// ErrUnknownKey means that a payload is encrypted with a key that is not in the key file.
var ErrUnknownKey = errors.New("a payload is encrypted with a key that --temporal-codec-key-file does not have")

// Decode implements converter.PayloadCodec. It returns plain payloads unchanged. It returns ErrUnknownKey if the key
// file does not contain the key of a payload.
func (c *Codec) Decode(all []*common.Payload) ([]*common.Payload, error) {
	k := c.keys()
	out := make([]*common.Payload, len(all))
	for i, p := range all {
		if !encrypted(p) {
			out[i] = p
			continue
		}
		name := string(p.GetMetadata()[metadataKey])
		sealer := k.by[name]
		if sealer == nil {
			return nil, fmt.Errorf("%w: %.63q", ErrUnknownKey, name)
		}
		raw, err := sealer.Open(nil, nil, p.GetData(), []byte(name))
		if err != nil {
			return nil, fmt.Errorf("decrypt a payload with key %q: its content was changed, or another key has that name", name)
		}
		out[i] = &common.Payload{}
		if err := proto.Unmarshal(raw, out[i]); err != nil {
			return nil, fmt.Errorf("decrypt a payload: %w", err)
		}
	}
	return out, nil
}

func encrypted(p *common.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == Encoding
}
