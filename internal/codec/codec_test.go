package codec

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// line returns a line of a key file with a new key.
func line(name string) string {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key)
	return name + " " + base64.StdEncoding.EncodeToString(key) + "\n"
}

// The function `with` opens a codec whose key file has these lines.
func with(t *testing.T, lines ...string) *Codec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
	c, err := Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return c
}

func payload(text string) *common.Payload {
	return &common.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte("json/plain")},
		Data: []byte(text)}
}

func encode(t *testing.T, c *Codec, p *common.Payload) *common.Payload {
	t.Helper()
	out, err := c.Encode([]*common.Payload{p})
	require.NoError(t, err)
	require.Len(t, out, 1)
	return out[0]
}

func requireDecodes(t *testing.T, c *Codec, p, want *common.Payload) {
	t.Helper()
	out, err := c.Decode([]*common.Payload{p})
	require.NoError(t, err)
	require.True(t, proto.Equal(want, out[0]), "%v", out[0])
}

func TestPayloadsAreEncryptedAndDecrypted(t *testing.T) {
	c, text := with(t, line("a")), payload(`{"price":0.12345}`)
	one, two := encode(t, c, text), encode(t, c, text)
	require.NotContains(t, string(one.GetData()), "0.12345")
	require.Equal(t, "a", string(one.GetMetadata()[metadataKey]))
	require.NotEqual(t, one.GetData(), two.GetData(), "equal payloads look different")
	requireDecodes(t, c, one, text)
	requireDecodes(t, c, text, text)
	require.Same(t, one, encode(t, c, one), "nothing is encrypted twice")

	changed := proto.Clone(one).(*common.Payload)
	changed.Data[len(changed.Data)/2] ^= 1
	_, err := c.Decode([]*common.Payload{changed})
	require.ErrorContains(t, err, "its content was changed")
	_, err = c.Decode([]*common.Payload{{Metadata: one.GetMetadata()}})
	require.Error(t, err)
	_, err = with(t, line("a")).Decode([]*common.Payload{one})
	require.ErrorContains(t, err, "another key has that name")
}

// TestKeysAreRotatedWithoutAGap replaces a key in three steps. It adds the new key at the end of all files, then
// moves it to the front, and at last removes the old key. During each step, some processes have the old file and some
// have the new file. All these processes can read each other's payloads.
func TestKeysAreRotatedWithoutAGap(t *testing.T) {
	old, new := line("old"), line("new")
	steps := []*Codec{with(t, old), with(t, old, new), with(t, new, old)}
	text := payload("1")
	for i, before := range steps[:2] {
		after := steps[i+1]
		requireDecodes(t, after, encode(t, before, text), text)
		requireDecodes(t, before, encode(t, after, text), text)
	}
	last := with(t, new)
	requireDecodes(t, last, encode(t, steps[2], text), text)
	_, err := last.Decode([]*common.Payload{encode(t, steps[1], text)})
	require.ErrorIs(t, err, ErrUnknownKey)
	require.ErrorContains(t, err, `"old"`)
}

// TestNewKeysNeedNoRestart replaces the key file with another valid file, whose keys take effect, and then with a
// broken file, which has no effect.
func TestNewKeysNeedNoRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(line("a"))
	var log bytes.Buffer
	c, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	key := func() string {
		c.at = time.Time{} // as if a second had passed
		return string(encode(t, c, payload("1")).GetMetadata()[metadataKey])
	}
	require.Equal(t, "a", key())
	write(line("b"))
	require.Equal(t, "b", key())
	write("broken")
	require.Equal(t, "b", key())
	require.Contains(t, log.String(), "the last keys stay in use")
}

func TestBadKeyFiles(t *testing.T) {
	good := line("a")
	secret := strings.Fields(good)[1]
	var seventeen strings.Builder
	for n := range maxKeys + 1 {
		seventeen.WriteString(line(fmt.Sprint(n)))
	}
	for text, want := range map[string]string{
		"":                           "it has no key",
		"# none\n\n":                 "it has no key",
		secret:                       "line 1: write the name of a key and the key",
		good + good:                  "line 2: a second key with the name a",
		"a/b " + secret:              "line 1: use letters, digits",
		"a " + secret[:20]:           "line 1: key a: a key is 32 bytes in base64",
		"a " + secret + secret:       "line 1: key a: a key is 32 bytes",
		"a -----BEGIN " + secret[:9]: "line 1: write the name",
		seventeen.String():           "line 17: at most 16",
	} {
		_, err := parseKeys([]byte(text))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), secret[:12], "an error repeats a key")
	}
	_, err := Open(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "no such file")
}

// TestTextsOfFailuresAreEncoded checks that the codec encodes the texts of a failure and of its causes exactly once,
// and that it decodes them again.
func TestTextsOfFailuresAreEncoded(t *testing.T) {
	f := &failure.Failure{Message: "milan at 10.1.2.3 refuses", StackTrace: "main.go:1"}
	require.NoError(t, hide(nil, f))
	require.Equal(t, "Encoded failure", f.GetMessage())
	require.Empty(t, f.GetStackTrace())
	require.NoError(t, hide(nil, f))
	require.NoError(t, show(nil, f))
	want := &failure.Failure{Message: "milan at 10.1.2.3 refuses", StackTrace: "main.go:1"}
	require.True(t, proto.Equal(want, f), "%v", f)
	require.NoError(t, show(nil, f), "a failure from before the codec")
	require.Equal(t, "milan at 10.1.2.3 refuses", f.GetMessage())
}

// TestHandlerAnswersOnlyTemporalsUIAndCLI checks that the handler answers the Temporal UI and the CLI. It refuses
// other web pages in the same browser.
func TestHandlerAnswersOnlyTemporalsUIAndCLI(t *testing.T) {
	c := with(t, line("a"))
	h := Handler(c, []string{"http://127.0.0.1:8233"})
	for name, tc := range map[string]struct {
		method, host, origin string
		code                 int
	}{
		"CLI":                 {http.MethodPost, "127.0.0.1:8234", "", http.StatusOK},
		"UI":                  {http.MethodPost, "localhost:8234", "http://127.0.0.1:8233", http.StatusOK},
		"preflight of the UI": {http.MethodOptions, "[::1]:8234", "http://127.0.0.1:8233", http.StatusNoContent},
		"another page":        {http.MethodPost, "127.0.0.1:8234", "https://evil.example", http.StatusForbidden},
		"its preflight":       {http.MethodOptions, "127.0.0.1:8234", "https://evil.example", http.StatusForbidden},
		"another name":        {http.MethodPost, "evil.example:8234", "http://127.0.0.1:8233", http.StatusForbidden},
	} {
		text := `{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"MQ=="}]}`
		r := httptest.NewRequest(tc.method, "/decode", strings.NewReader(text))
		r.Host = tc.host
		r.Header.Set("Content-Type", "application/json")
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, tc.code, w.Code, "%s: %s", name, w.Body)
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		require.Equal(t, tc.code < 300 && tc.origin != "", allowed != "", name)
		if tc.code == http.StatusOK {
			require.Contains(t, w.Body.String(), `"MQ=="`, name)
		}
	}
}

// TestCodecDoesNotChangeTheRequest checks that the codec changes only a copy of a request, because the SDK may send
// the original again.
func TestCodecDoesNotChangeTheRequest(t *testing.T) {
	request := &common.Payloads{Payloads: []*common.Payload{payload("1")}}
	err := copied(t.Context(), "", request, nil, nil, func(_ context.Context, _ string, sent, _ any, _ *grpc.ClientConn,
		_ ...grpc.CallOption) error {
		sent.(*common.Payloads).Payloads[0] = payload("2")
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "1", string(request.GetPayloads()[0].GetData()))
}
