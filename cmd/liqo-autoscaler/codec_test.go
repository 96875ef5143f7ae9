package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/codec"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

func TestCodecRefusesUnsafeFlags(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(keys, []byte("a short"), 0o600))
	for _, tc := range [][]string{
		{"--listen 0.0.0.0:8234: use a loopback address", "--listen", "0.0.0.0:8234"},
		{"--temporal-codec-key-file is missing"},
		{"--temporal-codec-key-file: " + keys + ": line 1: key a: a key is 32 bytes", "--temporal-codec-key-file", keys},
	} {
		_, _, err := command(t.Context(), append([]string{"temporal", "codec"}, tc[1:]...)...)
		require.ErrorContains(t, err, tc[0])
	}
	_, _, err := command(t.Context(), "status", "--temporal-codec-key-file", keys)
	require.ErrorContains(t, err, "a key is 32 bytes", "no command continues with plain payloads")
}

// TestCodecShowsMemos decrypts a large memo and decompresses it.
func TestCodecShowsMemos(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, os.WriteFile(keys, []byte("a "+key), 0o600))
	c, err := codec.Open(keys, nil)
	require.NoError(t, err)
	packed, err := fleet.Encode(json.RawMessage(`{"target":7}`))
	require.NoError(t, err)
	hidden, err := c.Encode([]*common.Payload{{Metadata: map[string][]byte{"encoding": []byte(workflows.EncodingGzip)},
		Data: packed}})
	require.NoError(t, err)
	body, err := protojson.Marshal(&common.Payloads{Payloads: hidden})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	address, ended := testkit.FreePorts(t, 1)[0], make(chan error, 1)
	go func() {
		_, _, err := command(ctx, "temporal", "codec", "--listen", address, "--temporal-codec-key-file", keys)
		ended <- err
	}()
	var said []byte
	testkit.Until(t, time.Minute, "the codec answers", func() error {
		answer, err := http.Post("http://"+address+"/decode", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		said, err = io.ReadAll(answer.Body)
		return err
	})
	var shown common.Payloads
	require.NoError(t, protojson.Unmarshal(said, &shown), "%s", said)
	require.JSONEq(t, `{"target":7}`, string(shown.GetPayloads()[0].GetData()))
	require.Equal(t, "json/plain", string(shown.GetPayloads()[0].GetMetadata()["encoding"]))
	cancel()
	require.NoError(t, <-ended)
}
